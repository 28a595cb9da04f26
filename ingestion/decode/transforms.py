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
from ingestion.decode.expression_runner import ExpressionRunner, lengths_of
from ingestion.decode.expressions import BadExpression
from ingestion.decode.fields import Mask
from ingestion.decode.filters import FilterRunner
from ingestion.decode.leaf_filters import LeafRunner
from ingestion.specs.schema.data_schema import ExpressionTransform, TransformSpec
from ingestion.specs.schema.filters import ExpressionFilter, Filter, LeafFilter

Columns = Mapping[str, pa.Array]
Times = npt.NDArray[np.int64]
_MAX_TIMES = 10  # as long as the record is, and so many bytes more
_MAX_BYTES = 16 * 1024
_LONGEST_WORD = len('"true"')


@dataclass(frozen=True)
class Transformed:
    """What transforms made of a batch."""

    columns: dict[str, pa.Array] = field(default_factory=dict)  # the fields that were made, as JSON text
    failed: dict[str, Mask] = field(default_factory=dict)  # by name, for which records it failed
    too_long: frozenset[int] = frozenset()  # records of which more was made than is kept of one

    def faults(self, is_kept: Mask) -> dict[int, str]:
        """What went wrong with the kept records, by index."""
        faults: dict[int, str] = {}
        for name, failed in self.failed.items():
            for index in np.flatnonzero(failed & is_kept).tolist():
                faults.setdefault(index, f"transform {name!r} fails on this record")
        return faults


@dataclass(frozen=True)
class FilterResult:
    """Which records the filter keeps."""

    is_kept: Mask
    undetermined: frozenset[int]  # whether the filter keeps them hangs on an expression of Druid's that fails on them


_NO_RECORDS: frozenset[int] = frozenset()
UNDECIDED = "the filter's expression fails on this record"
TOO_LONG = f"its transforms produce more than {_MAX_TIMES} times its length, and more than {_MAX_BYTES:,} bytes"


class Transforms:
    """Compiled. Raises ``BadExpression``."""

    def __init__(self, engine: Engine, spec: TransformSpec) -> None:
        self._runners = {t.name: _expression_runner(engine, f"transform {t.name!r}", t) for t in spec.transforms}
        self._filter = None if spec.filter is None else RecordFilter(engine, spec.filter)

    @property
    def names(self) -> frozenset[str]:
        """The fields that transforms make."""
        return frozenset(self._runners)

    @property
    def fields(self) -> list[str]:
        """The records' fields that have to be read for expressions, and for a filter that needs more than records."""
        names = [name for runner in self._runners.values() for name in runner.fields]
        if self._filter is not None:
            names += self._filter.fields(bool(self._runners))
        return list(dict.fromkeys(names))

    @property
    def reads(self) -> list[tuple[str, str]]:
        """The records' fields that expressions read, each with its transform."""
        return [
            (name, f"transform {made_field!r}")
            for made_field, runner in self._runners.items()
            for name in runner.fields
        ]

    @property
    def filter_reads(self) -> list[tuple[str, str]]:
        """The fields that the filter looks at, which are records' own or made."""
        return [] if self._filter is None else [(name, "filter") for name in self._filter.named]

    def apply(self, records: pa.Array, columns: Columns, ms: Times) -> Transformed:
        """Make fields of ``records`` (their texts) with the fields ``columns`` and times ``ms``."""
        left = lengths_of(records) * _MAX_TIMES + _MAX_BYTES
        transformed = Transformed()
        for name, runner in self._runners.items():
            results = runner.run(columns, ms, left)
            transformed.columns[name], transformed.failed[name] = results.texts, results.failed
            left = left - results.lengths
        return replace(transformed, too_long=frozenset(np.flatnonzero(left < 0).tolist()))

    def matching(
        self, texts: pa.Array, columns: Columns, transformed: Transformed, ms: Times, good: Mask
    ) -> FilterResult:
        """Which of the ``good`` records the filter keeps."""
        if self._filter is None:
            return FilterResult(good, _NO_RECORDS)
        return self._filter.matching(texts, columns, transformed, ms, good)


class RecordFilter:
    """A filter over records and what transforms made of them, compiled. Raises ``BadExpression``."""

    def __init__(self, engine: Engine, written: Filter) -> None:
        self._filter = FilterRunner(engine, written)
        expressions = self._filter.expressions
        self._conditions = {name: _condition_runner(engine, e) for name, e in expressions.items()}
        self._of_druid = [
            name for name, e in expressions.items() if not isinstance(e, ExpressionFilter) or e.language == "druid"
        ]

    def fields(self, transformed: bool) -> list[str]:
        """The records' fields that have to be read for it, if it needs more than records."""
        if not transformed and not self._conditions:
            return []
        return self.named

    @property
    def named(self) -> list[str]:
        """The fields that it looks at, which are records' own or made."""
        names = [name for runner in self._conditions.values() for name in runner.fields] + self._filter.fields
        return [name for name in dict.fromkeys(names) if name not in self._conditions]

    def matching(
        self, texts: pa.Array, columns: Columns, transformed: Transformed, ms: Times, good: Mask
    ) -> FilterResult:
        """Which of the ``good`` records it keeps."""
        if not transformed.columns and not self._conditions:
            return FilterResult(self._kept(texts, ms, good), _NO_RECORDS)
        all_columns = {**columns, **transformed.columns}
        conditions = {name: runner.run(all_columns, ms, _word_lengths(ms)) for name, runner in self._conditions.items()}
        condition_texts = {name: results.texts for name, results in conditions.items()}
        matching = self._kept(self._as_records(all_columns | condition_texts, ms), ms, good)
        failed = {name: conditions[name].failed for name in self._of_druid if conditions[name].failed.any()}
        if not failed:
            return FilterResult(matching, _NO_RECORDS)
        condition_texts |= {
            name: pc.if_else(pa.array(mask), "true", condition_texts[name]) for name, mask in failed.items()
        }
        otherwise = self._kept(self._as_records(all_columns | condition_texts, ms), ms, good)
        return FilterResult(matching & otherwise, frozenset(np.flatnonzero(matching != otherwise).tolist()))

    def _kept(self, texts: pa.Array, ms: Times, good: Mask) -> Mask:
        matching = good.copy()
        matching[good] = self._filter.matches(texts.filter(pa.array(good)), pa.array(ms[good]))
        return matching

    def _as_records(self, columns: Columns, ms: Times) -> pa.Array:
        """Records with the fields that the filter looks at, and its expressions' results as fields."""
        fields = {name: columns[name] for name in self._filter.fields}
        parts: list[pa.Array | str] = ["{"]
        for number, (name, texts) in enumerate(fields.items()):
            parts += ["," * bool(number) + json.dumps(name) + ":", texts.fill_null("null")]
        if not fields:
            return pa.array(["{}"] * len(ms), pa.string())
        return pc.binary_join_element_wise(*parts, "}", "")


def _word_lengths(ms: Times) -> Times:
    """Of a condition's result no more is kept than says whether it is true."""
    return np.full(len(ms), _LONGEST_WORD, np.int64)


def _condition_runner(engine: Engine, written: ExpressionFilter | LeafFilter) -> ExpressionRunner | LeafRunner:
    if isinstance(written, ExpressionFilter):
        return _expression_runner(engine, "filter", written)
    try:
        return LeafRunner(engine, written)
    except BadExpression as error:
        raise BadExpression(f"filter: {error}") from error


def _expression_runner(engine: Engine, where: str, written: ExpressionTransform | ExpressionFilter) -> ExpressionRunner:
    try:
        return ExpressionRunner(engine, written.expression, written.language, isinstance(written, ExpressionFilter))
    except BadExpression as error:
        raise BadExpression(f"{where}: {error}") from error
