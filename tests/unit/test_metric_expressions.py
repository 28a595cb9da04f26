"""Metrics that read an expression: what becomes of records, of those that it fails on, and of the fields it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from ingestion.decode.decoded import Decoded
from ingestion.specs.limits import MAX_FILTERED
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.decoders import ANY_NUMBER, decoder_of
from tests.unit.test_rows_metrics import rolled, schema_of

X = {"type": "selector", "dimension": "d", "value": "x"}


def summed(expression: str, **more: Any) -> dict[str, Any]:
    return {"type": "longSum", "name": "m", "expression": expression, **more}


def decoded(schema: DataSchema, *records: dict[str, Any]) -> Decoded:
    return decoder_of(schema).decode([json.dumps({"t": 0, **r}).encode() for r in records])


def test_records_become_one_row_with_the_sum_of_what_is_made_of_them() -> None:
    schema = schema_of([summed("v * 2 + f"), summed("m", name="of_m")], dimensionsSpec={"dimensions": ["d"]})
    records = [{"t": 0, "d": "x", "v": 3, "f": 1.5}, {"t": 1, "d": "x", "v": "4", "f": 1, "m": 100}]
    assert rolled(schema, records) == [{"__time": 0, "d": "x", "m": 7 + 9, "of_m": 100}]


def test_it_sees_what_transforms_make_and_the_time_before_it_is_cut() -> None:
    made = {"transforms": [{"type": "expression", "name": "twice", "expression": "v * 2"}]}
    schema = schema_of([summed("twice + __time")], dimensionsSpec={"dimensions": ["d"]}, transformSpec=made)
    assert decoded(schema, {"t": 61_001, "v": 5}).rows.column("m").to_pylist() == [61_011]


def test_its_fields_are_not_discovered() -> None:
    schema = schema_of([summed("v + w")], dimensionsSpec={"useSchemaDiscovery": True})
    rows = decoded(schema, {"v": 1, "w": 2, "other": "a"}).rows
    assert rows.column_names[2:] == ["other", "m"]


def test_a_record_that_it_fails_on_is_told_and_kept_without_it() -> None:
    schema = schema_of([summed("v / w")], dimensionsSpec={"dimensions": ["d"]})
    found = decoded(schema, {"v": 4, "w": 2}, {"v": 1, "w": 0}, {"v": "text", "w": 1})
    assert found.rows.column("m").to_pylist() == [2, None, None]
    assert found.processed_with_error == {1: "metric 'm': its expression fails on this record"}


def test_a_number_that_the_column_does_not_hold_is_told() -> None:
    found = decoded(schema_of([summed("v * 1e300", type="floatSum")]), {"v": 1})
    assert found.processed_with_error == {0: "the expression of metric 'm' is not a number"}


def test_of_a_filtered_one_only_records_that_match_can_fail() -> None:
    filtered = {"type": "filtered", "filter": X, "aggregator": summed("v / w")}
    schema = schema_of([filtered], dimensionsSpec={"dimensions": ["d"]})
    found = decoded(schema, {"d": "x", "v": 4, "w": 2}, {"d": "x", "w": 0, "v": 1}, {"d": "y", "w": 0, "v": 1})
    assert found.rows.column("m").to_pylist() == [2, None, None]
    assert list(found.processed_with_error) == [1]


def test_records_that_are_filtered_out_do_not_fail() -> None:
    schema = schema_of([summed("v / w")], dimensionsSpec={"dimensions": ["d"]}, transformSpec={"filter": X})
    found = decoded(schema, {"d": "y", "v": 1, "w": 0}, {"d": "x", "v": 6, "w": 2})
    assert (found.rows.column("m").to_pylist(), found.processed_with_error) == ([3], {})


@pytest.mark.parametrize(
    ("value", "expected", "fails"),
    [([3], 4, False), (["4"], 5, False), ([1, 2], None, False), ([], None, False), ([[1]], None, True)],
)
def test_a_list_where_a_plain_value_is_meant(value: Any, expected: int | None, fails: bool) -> None:
    found = decoded(schema_of([summed("v + 1")], dimensionsSpec={"dimensions": ["d"]}), {"v": value})
    assert found.rows.column("m").to_pylist() == [expected]
    assert bool(found.processed_with_error) is fails


@pytest.mark.parametrize("value", ["INF", "-INF", "[INF]", "[" * 2000 + "]" * 2000, f"[{'9' * 5000}]"])
def test_what_nobody_can_read_as_json_is_one_records_fault(value: str) -> None:
    schema = schema_of([summed("v")], dimensionsSpec={"dimensions": ["d"]})
    found = decoder_of(schema, ANY_NUMBER).decode([f'{{"t":0,"v":{v}}}'.encode() for v in ("1", value)])
    assert (found.rows.column("m").to_pylist(), list(found.processed_with_error)) == ([1, None], [1])


def test_a_list_that_is_meant_as_one_and_as_a_value_fails() -> None:
    schema = schema_of([summed("array_length(v) + v")], dimensionsSpec={"dimensions": ["d"]})
    found = decoded(schema, {"v": [1, 2]}, {"v": [3]})
    assert found.rows.column("m").to_pylist() == [None, 4]
    assert list(found.processed_with_error) == [0]


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (summed("v", fieldName="v"), "give either fieldName or expression"),
        ({"type": "longMax", "name": "m"}, "give either fieldName or expression"),
        (summed("v", type="longFirst"), "longFirst takes no expression, as in Druid"),
        ({"type": "doubleAny", "name": "m"}, "needs fieldName"),
        (summed(""), "at least 1 character"),
        (summed("v" * 10_001), "at most 10000 characters"),
    ],
)
def test_what_is_refused(metric: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        schema_of([metric])


def test_so_many_of_them_and_no_more() -> None:
    metrics = [summed("v", name=f"m{number}") for number in range(MAX_FILTERED)]
    schema_of(metrics)
    with pytest.raises(ValidationError, match="101 metrics read an expression; 100 at most"):
        schema_of([*metrics, summed("v")])
