"""Fields of a flattenSpec are read where they are, unless somebody looks at whole records: then these are made.

A filter that keeps all records is such a somebody, and must change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.decoded import Decoded
from ingestion.decode.formats.flatten import flatten_in_place
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.formats.input_format import JsonInputFormat
from ingestion.specs.schema.data_schema import DataSchema

FIELDS: list[dict[str, Any]] = [
    {"type": "path", "name": "a", "expr": "$.o.a"},
    {"type": "path", "name": "deep", "expr": "$.o.p.q[1]"},
    {"type": "path", "name": "n", "expr": "$.o.n"},
    {"type": "root", "name": "own"},
    {"type": "root", "name": "named", "expr": "it's"},
    {"type": "tree", "name": "twig", "nodes": ["o", "a/~"]},
]
DIMENSIONS = ["a", "deep", "own", "named", "twig", "else", "o", {"name": "n", "type": "long"}]
KEEPS_ALL = {"type": "true"}
RECORDS = [
    b'{"t":1,"o":{"a":"x","p":{"q":[1,"two"]},"n":3,"a/~":null},"own":1.50,"it\'s":true,"else":"e"}',
    b'{"t":1}',
    b'{"t":1,"o":null,"own":null,"a":"its own","n":"7"}',
    b' \r\n{"t":1,"o":[{"a":1}],"deep":[1]}',
    b'{"t":1,"o":{"a":{"b":[]},"n":"no number"},"named":9}',
    b'{"t":1,"o":{"a":1},"o":{"a":2},"else":1,"else":2}',
    b'{"t":1,"o":{"n":99999999999999999999,"a":1e400,"a/~":-0.0}}',
    b'{"t":1,"o":{"n":NaN,"a":Infinity}}',
    b"\xef\xbb\xbf{}",
    b"{}",
    b"[1]",
    b"null",
    b'"{"',
    b"",
    b"\xff{",
    b'{"t":1,"o":{"a":"x"}',
    b'{"t":1,}',
    b'{"t":"no time","o":{"a":"x"}}',
    None,
]


def schema(**more: Any) -> DataSchema:
    document = {
        "dataSource": "d",
        "timestampSpec": {"column": "t", "format": "millis"},
        "dimensionsSpec": {"dimensions": DIMENSIONS},
        "granularitySpec": {"rollup": False},
    }
    return DataSchema.model_validate(document | more)


def flattened(*, others: bool = True, fields: Sequence[dict[str, Any]] = FIELDS) -> JsonInputFormat:
    return JsonInputFormat.model_validate(
        {"type": "json", "flattenSpec": {"useFieldDiscovery": others, "fields": list(fields)}}
    )


def told(decoded: Decoded) -> Any:
    return decoded.rows.to_pylist(), decoded.unparseable, decoded.processed_with_error, decoded.tombstones


def decoded_both_ways(read: JsonInputFormat, payloads: list[bytes | None]) -> tuple[Any, Any]:
    one, other = (told(decoder.decode(payloads)) for decoder in both_decoders(read.model_dump_json()))
    return one, other


@cache
def both_decoders(input_format: str) -> tuple[JsonDecoder, JsonDecoder]:
    """One reads fields where they are, the other makes whole records."""
    read = JsonInputFormat.model_validate_json(input_format)
    transforms = [{"type": "expression", "name": "b", "expression": 'concat("a", "else")'}]
    plain, filtering = {"transforms": transforms}, {"transforms": transforms, "filter": KEEPS_ALL}
    return (
        JsonDecoder(schema(transformSpec=plain), input_format=read),
        JsonDecoder(schema(transformSpec=filtering), input_format=read),
    )


@pytest.fixture(scope="module", autouse=True)
def closed_decoders() -> Iterator[None]:
    yield
    for others in (True, False):
        for decoder in both_decoders(flattened(others=others).model_dump_json()):
            decoder.close()
    both_decoders.cache_clear()


@pytest.mark.parametrize("others", [True, False])
def test_a_filter_that_keeps_all_changes_nothing(others: bool) -> None:
    read = flattened(others=others)
    one_by_one, with_filter = decoded_both_ways(read, RECORDS)
    assert one_by_one == with_filter
    if others:
        row = one_by_one[0][0]
        assert {n: row[n] for n in ("a", "deep", "own", "named", "twig", "else", "n")} == {
            "a": "x", "deep": "two", "own": "1.5", "named": "true", "twig": None, "else": "e", "n": 3,
        }  # fmt: skip
        assert one_by_one[0][2]["a"] is None  # what a path does not find hides the record's own


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "p", "q", "n", "a/~"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(["o", "own", "it's", "a", "else", "n"]), VALUES), max_size=4))
def test_any_records_are_read_alike(records: list[dict[str, Any]]) -> None:
    payloads: list[bytes | None] = [json.dumps({"t": 1, **record}).encode() for record in records]
    one, other = decoded_both_ways(flattened(), payloads)
    assert repr(one) == repr(other)  # NaN is no more than itself


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({"transformSpec": {"filter": KEEPS_ALL}}, FIELDS),
        ({"dimensionsSpec": {"useSchemaDiscovery": True}}, FIELDS),
        (
            {
                "metricsSpec": [
                    {"type": "filtered", "filter": KEEPS_ALL, "aggregator": {"type": "count", "name": "count"}}
                ]
            },
            FIELDS,
        ),
        ({}, [{"type": "path", "name": "a", "expr": "$..a"}]),
        ({}, [{"type": "path", "name": "a", "expr": "$.o.length()"}]),
        ({}, [{"type": "jq", "name": "a", "expr": ".o"}]),
    ],
)
def test_whole_records_are_made_where_somebody_looks_at_them(more: Any, fields: list[dict[str, Any]]) -> None:
    read = flattened(fields=fields)
    assert flatten_in_place(schema(**more), read)[0] is read
    assert flatten_in_place(schema(), flattened())[0] == JsonInputFormat(type="json")
