"""The filter of a transformSpec: what it keeps, beside transforms and in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.rows import row_indexes
from tests.unit.test_rows_transforms import decoded_with, expression, schema_of


def kept(condition: dict[str, Any], *records: dict[str, Any], **expressions: str) -> list[int]:
    return row_indexes(decoded_with(schema_of(expressions, condition), *records).rows).tolist()


def test_a_filter_may_be_an_expression() -> None:
    records: list[dict[str, Any]] = [{"a": 1}, {"a": 5}, {"a": "x"}, {}]
    assert kept(expression("a > 3"), *records) == [1]
    assert kept(expression("a > 3 OR a IS NULL"), *records) == [1, 3]
    assert kept({"type": "not", "field": expression("a > 3")}, *records) == [0, 2, 3]
    both = {"type": "and", "fields": [expression("a < 3"), {"type": "selector", "dimension": "a", "value": "1"}]}
    assert kept(both, *records) == [0]
    two = {"type": "or", "fields": [expression("a = 1"), expression("a = 5")]}
    assert kept(two, *records) == [0, 1]
    assert kept(expression("a"), {"a": True}, {"a": False}, {"a": "true"}) == [0, 2]


def test_what_a_filter_throws_away_is_told_apart() -> None:
    decoded = decoded_with(schema_of({}, expression("a > 3")), {"a": 1}, {"a": 5}, {"t": "x", "a": 5})
    assert decoded.filtered == [0]
    assert list(decoded.unparseable) == [2]


def test_filters_see_what_transforms_make() -> None:
    """Druid: the filter is applied after the transforms."""
    native = {"type": "selector", "dimension": "b", "value": "2"}
    assert kept(native, {"a": 1}, {"a": 2, "b": 2}, b="a + 1") == [0]
    assert kept(expression("b = 2"), {"a": 1}, {"a": 2, "b": 2}, b="a + 1") == [0]
    assert kept({"type": "null", "column": "c"}, {"a": 1, "c": 1}, {"c": None}, b="1") == [1]
    assert kept({"type": "true"}, {"a": 1}, b="1") == [0]
    by_time = {"type": "bound", "dimension": "__time", "lower": 10, "ordering": "numeric"}
    assert kept(by_time, {"a": 1}, {"a": 20}, __time="a") == [1]


@pytest.mark.parametrize("name", ["", 'q"', "a\\b", "a.b", "\0x", "é", "a\nb", "x" * 500])
def test_odd_names_in_filters_after_transforms(name: str) -> None:
    """Row 18 of the security checklist: and in filters."""
    condition = {"type": "equals", "column": name or "a", "matchValue": 1}
    assert kept(condition, {name or "a": 1}, {name or "a": 2}, other="1") == [0]


def druid(text: str) -> dict[str, Any]:
    return {"type": "expression", "expression": text}


def test_a_filter_in_druids_language() -> None:
    records: list[dict[str, Any]] = [{"a": 1}, {"a": 7}, {"a": "x"}, {"a": None}, {"a": True}]
    assert kept(druid("a > 1"), *records) == [1]
    assert kept({"type": "not", "field": druid("a > 1")}, *records) == [0, 4]
    assert kept(druid("isnull(a) || a == 'x'"), *records) == [2, 3]


def test_a_record_on_which_a_filter_of_druids_fails_is_unparseable() -> None:
    """If the filter's answer hangs on it: nothing is thrown away that Druid might keep."""
    fails = druid("timestamp(a) > 1")
    records: list[dict[str, Any]] = [{"a": "x"}, {"a": "2025"}, {"a": "x", "b": "x"}]
    decoded = decoded_with(schema_of({}, fails), *records)
    assert (row_indexes(decoded.rows).tolist(), list(decoded.unparseable)) == ([1], [0, 2])
    assert "the filter's expression fails on this record" in decoded.unparseable[0]
    either = {"type": "or", "fields": [fails, {"type": "selector", "dimension": "b", "value": "x"}]}
    decoded = decoded_with(schema_of({}, either), *records)
    assert (row_indexes(decoded.rows).tolist(), list(decoded.unparseable)) == ([1, 2], [0])
    both = {"type": "and", "fields": [fails, {"type": "selector", "dimension": "b", "value": "y"}]}
    decoded = decoded_with(schema_of({}, both), *records)
    assert (decoded.filtered, decoded.unparseable) == ([0, 1, 2], {})


NUMBERS: list[dict[str, Any]] = [
    {"a": 2.0},
    {"a": 2},
    {"a": "2"},
    {"a": "2.0"},
    {"a": [2.0, 5]},
    {"a": 2.5},
    {"a": "x"},
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"type": "selector", "value": "2"}, [0, 1, 2]),
        ({"type": "selector", "value": "2.0"}, [0, 1, 3, 4]),
        ({"type": "selector", "value": "2.5"}, [5]),
        ({"type": "selector", "value": "2d"}, [0]),
        ({"type": "in", "values": ["2", "nothing"]}, [0, 1, 2]),
        ({"type": "in", "values": ["x", "2.50"]}, [5, 6]),
        ({"type": "equals", "matchValueType": "STRING", "matchValue": "2"}, [0, 1, 2]),
        ({"type": "inType", "matchValueType": "STRING", "values": ["2"]}, [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("transforms", [{}, {"other": "1"}])
def test_a_json_number_is_compared_as_a_number_with_a_text(
    condition: dict[str, Any], expected: list[int], transforms: dict[str, str]
) -> None:
    """Druid's filters do so for each row's own value; in a list numbers are texts."""
    named = {"column" if condition["type"] in ("equals", "inType") else "dimension": "a"}
    assert kept(condition | named, *NUMBERS, **transforms) == expected
    none = {"type": "not", "field": condition | named}
    assert kept(none, *NUMBERS, **transforms) == [i for i in range(len(NUMBERS)) if i not in expected]


def test_long_numbers_are_compared_exactly() -> None:
    records: list[dict[str, Any]] = [{"a": 2**53 + 1}, {"a": 2**53}, {"a": 1e300}]
    assert kept({"type": "selector", "dimension": "a", "value": str(2**53 + 1)}, *records) == [0]
    assert kept({"type": "selector", "dimension": "a", "value": "1E+300"}, *records) == [2]
