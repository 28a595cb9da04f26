"""A transformSpec at work: fields that expressions make of a record's fields, and which records are kept.

As in Druid, expressions of transforms see the record's own fields alone, not what other transforms make; a transform
of a field's name shadows it; the filter comes last and sees what the transforms have made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import Engine
from ingestion.decode.expressions import BadExpression, ExpressionRunner, lengths_of
from ingestion.decode.fields import Mask
from ingestion.decode.filters import FilterRunner
from ingestion.specs import TransformSpec

Columns = Mapping[str, pa.Array]
Times = npt.NDArray[np.int64]
_MOST_TIMES = 10  # as long as the record is, and so many bytes more
_MOST_BYTES = 16 * 1024
_LONGEST_WORD = len('"true"')


@dataclass(frozen=True)
class Transformed:
    """``columns``: the fields that were made, as JSON text. ``failed``: by name, for which records it failed.

    ``too_long``: records of which more was made than is kept of one.
    """

    columns: dict[str, pa.Array] = field(default_factory=dict)
    failed: dict[str, Mask] = field(default_factory=dict)
    too_long: frozenset[int] = frozenset()

    def faults(self, kept: Mask) -> dict[int, str]:
        """What went wrong with the kept records, by index."""
        found: dict[int, str] = {}
        for name, failed in self.failed.items():
            for index in np.flatnonzero(failed & kept).tolist():
                found.setdefault(index, f"transform {name!r} fails on this record")
        return found


TOO_LONG = f"its transforms make of it more than {_MOST_TIMES} times its length and {_MOST_BYTES:,} bytes"


class Transforms:
    """Compiled. Raises ``BadExpression``."""

    def __init__(self, engine: Engine, spec: TransformSpec) -> None:
        self._made = {t.name: _runner(engine, f"transform {t.name!r}", t.expression) for t in spec.transforms}
        self._filter = None if spec.filter is None else FilterRunner(engine, spec.filter)
        expressions = {} if self._filter is None else self._filter.expressions
        self._conditions = {name: _runner(engine, "filter", text) for name, text in expressions.items()}

    @property
    def names(self) -> frozenset[str]:
        """The fields that transforms make."""
        return frozenset(self._made)

    @property
    def fields(self) -> list[str]:
        """The records' fields that have to be read for expressions, and for a filter that needs more than records."""
        runners = [*self._made.values(), *self._conditions.values()]
        wanted = [name for runner in runners for name in runner.fields]
        if self._filter is not None and runners:
            wanted += self._filter.fields
        return [name for name in dict.fromkeys(wanted) if name not in self._conditions]

    def apply(self, records: pa.Array, columns: Columns, ms: Times) -> Transformed:
        """Make fields of ``records`` (their texts) with the fields ``columns`` and times ``ms``."""
        left = lengths_of(records) * _MOST_TIMES + _MOST_BYTES
        made = Transformed()
        for name, runner in self._made.items():
            found = runner.run(columns, ms, left)
            made.columns[name], made.failed[name] = found.texts, found.failed
            left = left - found.lengths
        return replace(made, too_long=frozenset(np.flatnonzero(left < 0).tolist()))

    def matching(self, texts: pa.Array, columns: Columns, made: Transformed, ms: Times, good: Mask) -> Mask:
        """Which of the ``good`` records the filter keeps."""
        if self._filter is None:
            return good
        if self._made or self._conditions:
            texts = self._as_records({**columns, **made.columns}, ms)
        matching = good.copy()
        matching[good] = self._filter.matches(texts.filter(pa.array(good)), pa.array(ms[good]))
        return matching

    def _as_records(self, columns: dict[str, pa.Array], ms: Times) -> pa.Array:
        """Records with the fields that the filter looks at, and its expressions' results as fields."""
        conditions = {
            name: runner.run(columns, ms, _a_word_each(ms)).texts for name, runner in self._conditions.items()
        }
        fields = {name: (columns | conditions)[name] for name in self._filter.fields} if self._filter else {}
        parts: list[pa.Array | str] = ["{"]
        for number, (name, texts) in enumerate(fields.items()):
            parts += ["," * bool(number) + json.dumps(name) + ":", texts.fill_null("null")]
        if not fields:
            return pa.array(["{}"] * len(ms), pa.string())
        return pc.binary_join_element_wise(*parts, "}", "")


def _a_word_each(ms: Times) -> Times:
    """Of a condition's result no more is kept than says whether it is true."""
    return np.full(len(ms), _LONGEST_WORD, np.int64)


def _runner(engine: Engine, where: str, text: str) -> ExpressionRunner:
    try:
        return ExpressionRunner(engine, text)
    except BadExpression as error:
        raise BadExpression(f"{where}: {error}") from error
