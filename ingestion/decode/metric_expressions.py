"""Metrics that read an expression of Druid's language instead of a field: numbers that it makes of each record.

An expression sees the record's fields and what transforms have made, and the record's own time. As in Druid, a text is
the number that it holds, an array the one that it holds alone, and what is no number is null. Where a field's list
stands for a plain value, Druid evaluates the expression of each value: of one it makes that one's number, of several an
array that is no number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.columns import first_bytes
from ingestion.decode.druid_values import EvaluationFailed, from_json, number
from ingestion.decode.engine import Engine
from ingestion.decode.expression_runner import ExpressionRunner
from ingestion.decode.expressions import BadExpression
from ingestion.decode.fields import Mask
from ingestion.decode.java_texts import UNREADABLE
from ingestion.decode.list_uses import ListUses
from ingestion.decode.transforms import Columns, Times
from ingestion.specs.schema.metrics import Metric

_LONGEST = 1024  # bytes of a result: more is no number
_IS_NUMBER = np.isin(np.arange(256), list(b"-0123456789"))


@dataclass(frozen=True)
class ComputedNumbers:
    """What expressions made of rows."""

    columns: dict[str, pa.Array] = field(default_factory=dict)  # numbers as JSON texts, by the metric's field
    faults: dict[int, str] = field(default_factory=dict)  # by row


class MetricExpressions:
    """The expressions of metrics, compiled. Raises ``BadExpression``."""

    def __init__(self, engine: Engine, metrics: list[Metric]) -> None:
        self._runners = {
            m.name: (m.field, _Compiled.of(engine, m.name, m.made_from))
            for m in metrics
            if m.field is not None and m.made_from is not None
        }

    @property
    def fields(self) -> list[str]:
        """The records' fields that have to be read for them, and that are not discovered."""
        return list(dict.fromkeys(name for _, compiled in self._runners.values() for name in compiled.runner.fields))

    @property
    def reads(self) -> list[tuple[str, str]]:
        """The fields that they read, which are records' own or made, each with its metric."""
        return [
            (f, f"metric {name!r}") for name, (_, compiled) in self._runners.items() for f in compiled.runner.fields
        ]

    @property
    def field_names(self) -> frozenset[str]:
        """The fields that they make."""
        return frozenset(name for name, _ in self._runners.values())

    def apply(self, columns: Columns, ms: Times, counted: Mapping[str, pa.Array]) -> ComputedNumbers:
        """Make the numbers of rows. ``counted``: of which of them alone a metric is made, by its name."""
        result = ComputedNumbers()
        most = np.full(len(ms), _LONGEST, np.int64)
        for name, (column_name, compiled) in self._runners.items():
            unwrapped, lists = compiled.lists.unwrapped(columns)
            computed = compiled.runner.run(unwrapped, ms, most)
            texts, failed = _numbers(computed.texts, computed.failed | (computed.lengths > _LONGEST))
            if lists is not None:
                texts, failed = (
                    pc.if_else(pa.array(lists.of_values), None, texts),
                    failed & ~lists.of_values | lists.of_both,
                )
            result.columns[column_name] = texts
            if name in counted:
                failed = failed & counted[name].to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(failed).tolist():
                result.faults.setdefault(row, f"metric {name!r}: its expression fails on this record")
        return result


@dataclass(frozen=True)
class _Compiled:
    runner: ExpressionRunner
    lists: ListUses

    @classmethod
    def of(cls, engine: Engine, name: str, expression: str) -> _Compiled:
        """Raises ``BadExpression``."""
        try:
            return cls(ExpressionRunner(engine, expression, "druid"), ListUses.of(expression))
        except BadExpression as error:
            raise BadExpression(f"metric {name!r}: {error}") from error


def _numbers(texts: pa.Array, failed: Mask) -> tuple[pa.Array, Mask]:
    """The texts of numbers, and what is one in the others; and where there may be one that nobody can tell."""
    is_present = texts.is_valid().to_numpy(zero_copy_only=False)
    others = is_present.copy()
    others[is_present] = ~_IS_NUMBER[first_bytes(texts)]
    places = np.flatnonzero(others)
    if not len(places):
        return texts, failed
    failed, parsed = failed.copy(), []
    for place, text in zip(places.tolist(), texts.take(pa.array(places)).to_pylist(), strict=True):
        try:
            parsed.append(_number(text))
        except (EvaluationFailed, *UNREADABLE):
            parsed.append(None)
            failed[place] = True
    return pc.replace_with_mask(texts, pa.array(others), pa.array(parsed, pa.string())), failed


def _number(text: str) -> str | None:
    """Raises ``EvaluationFailed``."""
    parsed = number(from_json(json.loads(text)))
    if parsed is None:
        return None
    if isinstance(parsed, float) and not np.isfinite(parsed):
        raise EvaluationFailed
    return json.dumps(parsed)
