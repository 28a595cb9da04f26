"""Druid's filters that are no part of the SQL: each looks at values one by one, and says true, false or nothing.

A field that is a list matches where one of its values does. Nothing is said of null, so that neither the filter nor
its ``not`` matches; ``interval`` and ``columnComparison`` say something always.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ingestion.decode.druid_patterns import pattern
from ingestion.decode.druid_strings import icontains
from ingestion.decode.druid_values import EvaluationFailed, Value, as_long, number_text, parse_number, to_units
from ingestion.decode.engine import Engine
from ingestion.decode.expression_runner import Lengths, Results
from ingestion.decode.expressions import BadExpression
from ingestion.decode.fields import Mask
from ingestion.rows import TIME
from ingestion.specs.schema.filters import (
    ColumnComparisonFilter,
    IntervalFilter,
    LeafFilter,
    RangeFilter,
    RegexFilter,
    SearchFilter,
)
from ingestion.specs.schema.java_classes import BadPattern

Texts = list[str | None]  # a field's values; of null one None
Verdict = bool | None
_WORDS = {True: "true", False: "false", None: None}


class LeafRunner:
    """A filter, ready to run as expressions do. Raises ``BadExpression``."""

    def __init__(self, engine: Engine, condition: LeafFilter) -> None:
        self._engine = engine
        named = condition.dimensions if isinstance(condition, ColumnComparisonFilter) else [condition.column_]
        self._names = named
        self.fields = [name for name in dict.fromkeys(named) if name != TIME]
        try:
            self._predicate = _BUILDERS[type(condition)](condition)
            self._texts = _texts if isinstance(condition, ColumnComparisonFilter) else _written_texts
        except BadPattern as error:
            raise BadExpression(str(error)) from None

    def run(self, columns: Mapping[str, pa.Array], ms: Lengths, most: Lengths) -> Results:
        """What it says of each record; ``columns`` hold the fields as JSON text, ``ms`` the times."""
        values = {name: columns[name].to_pylist() for name in self.fields}
        words: list[str | None] = []
        failed: Mask = np.zeros(len(ms), np.bool_)
        for place, time in enumerate(ms.tolist()):
            self._engine.check_interrupted()
            try:
                fields = [_single_text(str(time)) if n == TIME else self._texts(values[n][place]) for n in self._names]
                words.append(_WORDS[self._predicate(fields)])
            except (EvaluationFailed, ValueError, RecursionError):
                words.append(None)
                failed[place] = True
        return Results.of(pa.array(words, pa.string()), failed, most)


def _single_text(text: str) -> Texts:
    return [text]


def _texts(text: str | None) -> Texts:
    """A list's values, or the one that there is."""
    value = None if text is None else json.loads(text)
    return [_text(v) for v in value] or [None] if isinstance(value, list) else [_text(value)]


def _written_texts(text: str | None) -> Texts:
    """A null in a list is written as one, but where columns are compared."""
    texts = _texts(text)
    return (
        ["null" if v is None else v for v in texts]
        if text is not None and text[:1] == "[" and json.loads(text)
        else texts
    )


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, dict | list):
        raise EvaluationFailed
    return None if value is None else str(value)


def _matches_any(says: Callable[[str], bool], unknown: Verdict = None) -> Callable[[list[Texts]], Verdict]:
    """Of one field."""

    def matches(fields: list[Texts]) -> Verdict:
        texts = [text for text in fields[0] if text is not None]
        return any(says(text) for text in texts) if texts else unknown

    return matches


def _regex(condition: RegexFilter) -> Callable[[list[Texts]], Verdict]:
    written = pattern(condition.pattern)
    return _matches_any(lambda text: written.search(text) is not None)


def _search(condition: SearchFilter) -> Callable[[list[Texts]], Verdict]:
    query = condition.query
    if query.pattern is not None:
        written = pattern(query.pattern)
        return _matches_any(lambda text: written.search(text) is not None)
    if query.type == "all":
        return _matches_any(lambda text: True)
    parts = query.required_values
    if query.type != "insensitive_contains" and query.caseSensitive:
        return _matches_any(lambda text: all(part in text for part in parts))
    return _matches_any(lambda text: all(icontains(text, part) for part in parts))


def _interval(condition: IntervalFilter) -> Callable[[list[Texts]], Verdict]:
    ranges = condition.ranges

    def says(text: str) -> bool:
        number: Value = None if text.lower() in ("true", "false") else as_long(text)
        return isinstance(number, int) and any(start <= number < end for start, end in ranges)

    return _matches_any(says, unknown=False)


def _range(condition: RangeFilter) -> Callable[[list[Texts]], Verdict]:
    if condition.matchValueType == "STRING":
        low, high = (None if v is None else to_units(_text(v) or "") for v in (condition.lower, condition.upper))
        return _matches_any(lambda text: _is_between(to_units(text), low, high, condition))
    least, most = (None if v is None else float(v) for v in (condition.lower, condition.upper))

    def says(text: str) -> bool:
        """What is no number sorts below all numbers."""
        number = None if text.lower() in ("true", "false") else parse_number(text)
        return least is None if number is None else _is_between(float(number), least, most, condition)

    return _matches_any(says)


def _is_between(value: Any, low: Any, high: Any, condition: RangeFilter) -> bool:
    above = low is None or value > low or (value == low and not condition.lowerOpen)
    return above and (high is None or value < high or (value == high and not condition.upperOpen))


def _all_equal(condition: ColumnComparisonFilter) -> Callable[[list[Texts]], Verdict]:
    def says(fields: list[Texts]) -> Verdict:
        first, *others = fields
        return all(set(first) & set(other) for other in others)

    return says


_BUILDERS: dict[type, Callable[[Any], Callable[[list[Texts]], Verdict]]] = {
    RegexFilter: _regex,
    SearchFilter: _search,
    IntervalFilter: _interval,
    RangeFilter: _range,
    ColumnComparisonFilter: _all_equal,
}
