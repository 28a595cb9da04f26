"""Filters: which records are kept. What matches is from Druid's documentation of query filters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.message_window import MessageWindow
from ingestion.rows import row_indexes
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.decoders import decoder_of

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")


def kept(condition: dict[str, Any], *records: str) -> list[int]:
    """The indexes of the records (the inside of a JSON object) that the filter keeps; no column is stored."""
    schema = DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t"},
            "dimensionsSpec": {"dimensions": ["other"]},
            "transformSpec": {"filter": condition},
        }
    )
    payloads = [("{" + ",".join(['"t":0', r] if r else ['"t":0']) + "}").encode() for r in records]
    decoded = decoder_of(schema).decode(payloads, MessageWindow())
    assert decoded.unparseable == {}
    rows: list[int] = row_indexes(decoded.rows).tolist()
    assert sorted(rows + decoded.filtered) == list(range(len(records)))
    return rows


#            0          1          2        3            4         5           6          7    8
RECORDS = ['"v":"a"', '"v":"b"', '"v":1', '"v":"10"', '"v":2.50', '"v":true', '"v":null', "", '"v":""']
EVERY = list(range(9))


def selector(value: Any) -> dict[str, Any]:
    return {"type": "selector", "dimension": "v", "value": value}


def bound(**sides: Any) -> dict[str, Any]:
    return {"type": "bound", "dimension": "v", **sides}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (selector("a"), [0]),
        (selector("A"), []),
        (selector("1"), [2]),
        (selector(1), [2]),
        (selector("2.5"), [4]),
        (selector(2.5), [4]),
        (selector("true"), [5]),
        (selector(True), [5]),
        (selector(""), [8]),
        (selector(None), [6, 7]),
        ({"type": "not", "field": selector("a")}, [1, 2, 3, 4, 5, 8]),
        ({"type": "not", "field": selector(None)}, [0, 1, 2, 3, 4, 5, 8]),
        ({"type": "not", "field": {"type": "not", "field": selector("a")}}, [0]),
        ({"type": "null", "column": "v"}, [6, 7]),
        ({"type": "in", "dimension": "v", "values": ["a", 1, "2.5"]}, [0, 2, 4]),
        ({"type": "in", "dimension": "v", "values": ["b", None]}, [1, 6, 7]),
        ({"type": "in", "dimension": "v", "values": [None]}, [6, 7]),
        ({"type": "not", "field": {"type": "in", "dimension": "v", "values": ["a"]}}, [1, 2, 3, 4, 5, 8]),
        ({"type": "equals", "column": "v", "matchValue": "a"}, [0]),
        ({"type": "equals", "column": "v", "matchValue": 1}, [2]),
        ({"type": "equals", "column": "v", "matchValue": 10}, [3]),
        ({"type": "equals", "column": "v", "matchValue": 2.5}, [4]),
        ({"type": "equals", "column": "v", "matchValue": "2.5", "matchValueType": "DOUBLE"}, [4]),
        ({"type": "equals", "column": "v", "matchValue": 10, "matchValueType": "STRING"}, [3]),
        ({"type": "not", "field": {"type": "equals", "column": "v", "matchValue": 1}}, [0, 1, 3, 4, 5, 8]),
        ({"type": "true"}, EVERY),
        ({"type": "false"}, []),
        ({"type": "and", "fields": [selector("a"), selector("b")]}, []),
        ({"type": "or", "fields": [selector("a"), selector("b")]}, [0, 1]),
        (
            {"type": "and", "fields": [{"type": "true"}, {"type": "not", "field": selector("b")}]},
            [0, 2, 3, 4, 5, 8],
        ),
        (bound(lower="a"), [0, 1, 5]),
        (bound(lower="a", lowerStrict=True), [1, 5]),
        (bound(lower="a", upper="b"), [0, 1]),
        (bound(lower="a", upper="b", upperStrict=True), [0]),
        (bound(upper="10"), [2, 3, 6, 7, 8]),  # without a lower bound null matches
        (bound(), EVERY),
        (bound(lower="1", upper="10", ordering="numeric"), [2, 3, 4]),
        (bound(lower=1, lowerStrict=True, upper=10, upperStrict=True, ordering="numeric"), [4]),
        (bound(lower="2.5", ordering="numeric"), [3, 4]),
        (bound(upper="1", ordering="numeric"), [0, 1, 2, 5, 6, 7, 8]),  # what is no number sorts below all
        (bound(lower="b", ordering="numeric"), [1, 2, 3, 4, 5]),
        (bound(upper="b", upperStrict=True, ordering="numeric"), [0, 6, 7, 8]),
        ({"type": "not", "field": bound(lower="a")}, [2, 3, 4, 6, 7, 8]),
        ({"type": "like", "dimension": "v", "pattern": "%"}, [0, 1, 2, 3, 4, 5, 8]),
        ({"type": "like", "dimension": "v", "pattern": "_"}, [0, 1, 2]),
        ({"type": "like", "dimension": "v", "pattern": "1%"}, [2, 3]),
    ],
)
def test_what_matches(condition: dict[str, Any], expected: list[int]) -> None:
    assert kept(condition, *RECORDS) == expected


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("a%", None, ["a%", "a_", "a\\", "ab", "a"]),
        ("a|%", "|", ["a%"]),
        ("a|_", "|", ["a_"]),
        ("a\\", None, ["a\\"]),
        ("a\\_", "\\", ["a_"]),
        ("|a", "|", ["a"]),
        ("a|", "|", ["a"]),
        ("||%", "|", ["|x"]),
        ("😀%", "é", ["😀!"]),
    ],
)
def test_like_patterns(pattern: str, escape: str | None, expected: list[str]) -> None:
    values = ["a%", "a_", "a\\", "ab", "a", "|x", "😀!"]
    condition = {"type": "like", "dimension": "v", "pattern": pattern, "escape": escape}
    found = kept(condition, *(f'"v":{json.dumps(v)}' for v in values))
    assert [values[i] for i in found] == expected


def test_nested_values_compare_as_json_text() -> None:
    assert kept(selector('{"a":[1,2]}'), '"v":{"a": [1, 2]}', '"v":"x"') == [0]


def test_time_is_milliseconds() -> None:
    """Druid's example of an interval filter written as a bound filter on ``__time``."""
    condition = {"type": "bound", "dimension": "__time", "lower": "1", "upper": 5, "upperStrict": True}
    schema = DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "__time"},
            "granularitySpec": {"queryGranularity": "HOUR"},
            "transformSpec": {"filter": {**condition, "ordering": "numeric"}},
        }
    )
    payloads = [f'{{"__time":"1970-01-01T00:00:00.{ms:03}Z"}}'.encode() for ms in (0, 1, 4, 5)]
    decoded = decoder_of(schema).decode(payloads, MessageWindow())
    assert decoded.filtered == [0, 3]


@pytest.mark.parametrize("name", ["a.b", "it's", 'q"', "/", "~", "😀", "\0", "); DROP TABLE records; --", "$1"])
def test_any_field_name_and_value(name: str) -> None:
    """Row 18 of the security checklist: fields' names in the decoder's SQL."""
    condition = {"type": "selector", "dimension": name, "value": name}
    assert kept(condition, f"{json.dumps(name)}:{json.dumps(name)}", f"{json.dumps(name)}:1") == [0]


LEAVES = st.one_of(
    st.builds(selector, st.none() | st.text(max_size=3) | st.integers() | st.floats(allow_nan=False)),
    st.builds(
        lambda low, high, order: bound(lower=low, upper=high, ordering=order),
        st.none() | st.text(max_size=3),
        st.none() | st.text(max_size=3) | st.integers(),
        st.sampled_from(["lexicographic", "numeric"]),
    ),
    st.builds(
        lambda pattern, escape: {"type": "like", "dimension": "v", "pattern": pattern, "escape": escape},
        st.text("a%_|\\", max_size=5),
        st.none() | st.sampled_from("|\\%a"),
    ),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda kind, fields: {"type": kind, "fields": fields},
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=4,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=25)
@given(condition=CONDITIONS, values=st.lists(st.text(max_size=3) | st.integers() | NUMBERS, max_size=6))
def test_not_keeps_exactly_what_the_filter_drops_but_nulls(condition: dict[str, Any], values: list[Any]) -> None:
    records = [f'"v":{json.dumps(v)}' for v in values]
    both = kept(condition, *records) + kept({"type": "not", "field": condition}, *records)
    assert sorted(both) == list(range(len(values)))
