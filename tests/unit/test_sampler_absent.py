"""Fields that a spec names and none of the pasted records has, as the sampler says them."""

from __future__ import annotations

import pytest

from tests.support.pasted import TIMED, sample


def test_what_the_spec_names_and_no_record_has() -> None:
    schema = {
        "timestampSpec": {"column": "t", "format": "auto"},
        "dimensionsSpec": {"dimensions": ["country", "contry", "total"]},
        "metricsSpec": [
            {"type": "count", "name": "n"},
            {"type": "doubleSum", "name": "paid", "fieldName": "amout"},
            {"type": "doubleMax", "name": "most", "expression": "amount * rat"},
            {
                "type": "filtered",
                "filter": {"type": "selector", "dimension": "stat", "value": "x"},
                "aggregator": {"type": "count", "name": "of_state"},
            },
        ],
        "transformSpec": {
            "transforms": [{"type": "expression", "name": "total", "expression": "amount + txa + __time"}],
            "filter": {"type": "not", "field": {"type": "null", "column": "kind"}},
        },
    }
    answer = sample(b'{"t": 1, "country": "a", "amount": 2}', b'{"t": 1, "kind": null}', b"x", schema=schema)
    assert {field.name: field.read_by for field in answer.absent} == {
        "txa": ["transform 'total'"],
        "contry": ["dimension"],
        "amout": ["metric 'paid'"],
        "rat": ["metric 'most'"],
        "stat": ["metric 'of_state'"],
    }
    assert sample(b"x", schema=schema).absent == []
    plain = sample(b'{"t": 1}', schema={**schema, "transformSpec": {}}).absent
    assert {field.name for field in plain} == {"stat", "amount", "rat", "amout", "country", "contry", "total"}


FLATTENED = {
    "type": "json",
    "flattenSpec": {
        "fields": [
            {"type": "path", "name": "city", "expr": "$.a.city"},
            {"type": "path", "name": "zip", "expr": "$.a.zipp"},
            {"type": "jq", "name": "street", "expr": ".b.street"},
            "lost",
        ]
    },
}


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_flattened_field_that_no_record_has_is_absent(wrapped: bool) -> None:
    schema = {**TIMED, "dimensionsSpec": {"dimensions": ["city", "a.city", "zip"]}}
    input_format = {"type": "kafka", "valueFormat": FLATTENED} if wrapped else FLATTENED
    answer = sample(b'{"t": 1, "a": {"city": "b"}}', b'{"t": 1}', input_format=input_format, schema=schema)
    assert {field.name: field.read_by for field in answer.absent} == {
        "a.city": ["dimension"],
        "zip": ["dimension", "flattenSpec"],
        "street": ["flattenSpec"],
        "lost": ["flattenSpec"],
    }


def test_a_time_that_no_record_has_and_a_field_that_is_left_out_in_vain() -> None:
    schema = {
        "timestampSpec": {"column": "tiem", "missingValue": "2020-01-01"},
        "dimensionsSpec": {"useSchemaDiscovery": True, "dimensionExclusions": ["citty", "n"]},
    }
    found = {field.name: field.read_by for field in sample(b'{"time": 1, "n": 1}', schema=schema).absent}
    assert found == {"tiem": ["timestampSpec"], "citty": ["dimensionExclusions"]}
    made = {"transforms": [{"type": "expression", "name": "__time", "expression": "time"}]}
    assert sample(b'{"time": 1}', schema={**TIMED, "transformSpec": made}).absent == []
    assert sample(b'{"time": 1}').absent == []
