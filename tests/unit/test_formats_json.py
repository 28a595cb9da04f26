"""``json`` with a ``flattenSpec``, by Druid's reference of flattening."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.json_reader import JsonReader
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.formats.input_format import JsonInputFormat
from ingestion.specs.formats.json_path import parse_json_path
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.formats import decoded, ends, format_of, row, rows, schema_of

RECORD = {
    "t": "2025-06-01T00:00:00Z",
    "baz": "root",
    "foo": {"bar": "nested", "other": {"bar": 7}, "x y": True},
    "thing": {"food": ["apple", "pear"], "n": [1, 2, 4.5], "deep": [{"id": 1}, {"id": 2}]},
}


def flattened(fields: list[Any], discover: bool = True, record: Any = RECORD) -> dict[str, Any]:
    spec = {"type": "json", "flattenSpec": {"useFieldDiscovery": discover, "fields": fields}}
    return row(spec, json.dumps(record).encode())


def path(expr: str) -> dict[str, str]:
    return {"type": "path", "name": "v", "expr": expr}


def test_the_documents_example() -> None:
    fields = [
        {"name": "baz", "type": "root"},
        {"name": "foo_bar", "type": "path", "expr": "$.foo.bar"},
        {"name": "foo_other_bar", "type": "tree", "nodes": ["foo", "other", "bar"]},
    ]
    assert flattened(fields, discover=False) == {"baz": "root", "foo_bar": "nested", "foo_other_bar": 7}
    assert flattened(["baz"], discover=False) == {"baz": "root"}


def test_discovered_fields_stay_and_nested_ones_are_json() -> None:
    found = flattened([path("$.foo.bar")])
    assert list(found) == ["v", "baz", "foo", "thing"]
    assert found["v"] == "nested"
    assert json.loads(found["foo"]) == RECORD["foo"]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("$.foo['bar']", "nested"),
        ('$["foo"].other.bar', 7),
        ("$.foo['x y']", True),
        ("$.thing.food[1]", "pear"),
        ("$.thing.food[-1]", "pear"),
        ("$.thing.food", '["apple","pear"]'),
        ("$.thing.deep[*].id", "[1,2]"),
        ("$..id", "[1,2]"),
        ("$.thing.n.min()", 1.0),
        ("$.thing.n.max()", 4.5),
        ("$.thing.n.sum()", 7.5),
        ("$.thing.n.avg()", 2.5),
        ("$.thing.n.length()", 3),
        ("$..id.sum()", 3.0),
        ("$.thing.deep[0:1].id", "[1]"),
        ("thing.deep[?(@.id>1 || @.id==7)].id", "[2]"),
        ("$.foo.keys()", '["bar","other","x y"]'),
        ("$.thing['n','none']", '{"n":[1,2,4.5]}'),
        ("$.foo[*].none", "[null]"),
        ("$.foo.length()", 3),
        ("$..bar", '["nested",7]'),
        ("$.foo.*", '["nested",{"bar":7},true]'),
        ("$.foo[*].bar", "[7]"),
        ("$.thing.deep[-1].*", "[2]"),
        ("$..nothing", "[]"),
    ],
)
def test_paths(expr: str, expected: Any) -> None:
    assert flattened([path(expr)], discover=False) == {"v": expected}


@pytest.mark.parametrize("expr", ["$.missing", "$.foo.bar.x", "$.thing.food[9]", "$.missing.sum()", "$.baz.length()"])
def test_what_a_path_does_not_find_is_null(expr: str) -> None:
    assert flattened([path(expr)], discover=False).get("v") in (None, 0)


def test_stddev_is_that_of_the_population() -> None:
    assert flattened([path("$.n.stddev()")], False, {"n": [2, 4, 4, 4, 5, 5, 7, 9]}) == {"v": 2.0}


def test_a_flattened_field_hides_the_records_own() -> None:
    fields = [{"type": "path", "name": "baz", "expr": "$.foo.bar"}, {"type": "root", "name": "b", "expr": "baz"}]
    found = flattened(fields)
    assert (found["baz"], found["b"]) == ("nested", "root")


def test_the_time_may_be_flattened() -> None:
    spec = {"type": "json", "flattenSpec": {"fields": [{"type": "path", "name": "t", "expr": "$.at.time"}]}}
    found = decoded(spec, [b'{"at":{"time":"2025-06-01"}}'])
    assert found.rows.column("__time")[0].as_py().isoformat() == "2025-06-01T00:00:00+00:00"


def test_bad_records_stay_what_they_are() -> None:
    spec = {"type": "json", "flattenSpec": {"fields": [path("$.a.b")]}}
    found = decoded(spec, [b'{"a":{"b":1}}', b"{", b"[1]", None, b"\xff", b"{ }"])
    assert {i: m.split(":")[0] for i, m in found.unparseable.items()} == {
        1: "not JSON",
        2: "not a JSON object but an array",
        4: "not UTF-8",
    }
    assert found.tombstones == [3]
    assert found.rows.column("v").to_pylist() == [1, None]


def test_options_that_change_nothing() -> None:
    spec = {"type": "json", "keepNullColumns": True, "featureSpec": {"ALLOW_NON_NUMERIC_NUMBERS": True, "X": False}}
    assert rows(decoded(spec, [b'{"a":1,"b":null}'])) == [{"a": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".a",
        "@.a",
        "$.a[?(@.b)]",
        "$.a[?(@.b==1",
        "$.a[?(@.b==1 &&)]",
        "$.a[?(@..b==1)]",
        "$.a[?(@.b<true)]",
        "$.a[1:-1]",
        "$.a[::2]",
        "$['a',]",
        "$.a.concat(1)",
        "$.a..",
        "$.a\\b",
        "$.a[*].sum()",
        "$..a.keys()",
        "$.a[0,1].length()",
    ],
)
def test_paths_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json_path(text)


NAMES = st.text(alphabet="ab.é \"'[]", min_size=1, max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=30)
@given(record=st.dictionaries(NAMES, VALUES, max_size=3), nodes=st.lists(NAMES, min_size=1, max_size=3))
def test_a_tree_finds_what_python_finds(record: dict[str, Any], nodes: list[str]) -> None:
    expected: Any = record
    for name in nodes:
        expected = expected.get(name) if isinstance(expected, dict) else None
    spec = {"type": "json", "flattenSpec": {"fields": [{"type": "tree", "name": "v", "nodes": nodes}]}}
    decoder = JsonDecoder(schema_of(dimensions=[{"name": "v", "type": "json"}]), input_format=format_of(spec))
    found = decoder.decode([json.dumps(record).encode()])
    decoder.close()
    assert ends(found) == [0]
    text = found.rows.column("v")[0].as_py()
    assert (None if text is None else json.loads(text)) == expected


def test_a_comma_before_an_end_is_let_pass_where_the_spec_says_so() -> None:
    spec = {"type": "json", "featureSpec": {"ALLOW_TRAILING_COMMA": True}}
    assert rows(decoded(spec, [b'{"a":1,}'])) == [{"a": 1}]
    assert list(decoded({"type": "json"}, [b'{"a":1}', b'{"a":[1 , ] }']).unparseable) == [1]


def test_a_path_that_searches_an_endless_depth_finds_nothing() -> None:
    deep = b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    spec = {"type": "json", "flattenSpec": {"useFieldDiscovery": False, "fields": [path("$..b")]}}
    assert rows(decoded(spec, [deep])) == [{}]


@pytest.mark.parametrize("reader", ["assumeNewlineDelimited", "useJsonNodeReader"])
def test_a_records_rows_share_its_fate_whatever_reads_it(reader: str) -> None:
    found = decoded({"type": "json", reader: True}, [b'{"a":1}', b'{"a":1}\n{"a":2}', b'{"a":3}\n{"a"'])
    assert found.rows.column("a").to_pylist() == [1, 1, 2]
    assert list(found.unparseable) == [2]


NAMED_BESIDE = b'{"timestamp":"2024-01-01","a":"x","b":{"c":5},"n":2}'
NO_DISCOVERY = {
    "type": "json",
    "flattenSpec": {
        "useFieldDiscovery": False,
        "fields": ["timestamp", {"type": "path", "name": "c", "expr": "$.b.c"}],
    },
}


def naming(dimensions: dict[str, Any], **more: Any) -> DataSchema:
    upper = {"type": "expression", "name": "upper", "expression": "upper(a)"}
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "timestamp"},
            "dimensionsSpec": dimensions,
            "metricsSpec": [{"type": "longSum", "name": "sum", "fieldName": "n"}],
            "transformSpec": {"transforms": [upper], **more},
        }
    )


@pytest.mark.parametrize("more", [{}, {"filter": {"type": "selector", "dimension": "a", "value": "x"}}])
def test_fields_that_the_spec_names_are_read_though_none_is_discovered(more: Any) -> None:
    named = {"dimensions": ["a", "n", "c", "upper", {"type": "json", "name": "b"}]}
    found = decoded(NO_DISCOVERY, [NAMED_BESIDE], schema=naming(named, **more))
    assert rows(found) == [{"a": "x", "n": "2", "c": "5", "upper": "X", "b": '{"c":5}', "sum": 2}]


def test_only_flattened_fields_are_discovered_where_the_record_s_own_are_not() -> None:
    keeps = {"type": "selector", "dimension": "a", "value": "x"}
    everything = {"useSchemaDiscovery": True, "dimensions": ["upper"]}
    found = decoded(NO_DISCOVERY, [NAMED_BESIDE], schema=naming(everything, filter=keeps))
    assert rows(found) == [{"upper": "X", "c": 5, "sum": 2}]


def test_kafka_s_own_fields_are_discovered_though_the_value_s_are_not() -> None:
    spec = {"type": "kafka", "valueFormat": NO_DISCOVERY, "headerFormat": {"type": "string"}}
    envelope = Envelope("orders", [None], [7], [(("h", b"1"),)])
    found = decoded(spec, [NAMED_BESIDE], envelope, schema=naming({"useSchemaDiscovery": True}))
    (only,) = rows(found)
    assert only == {"c": 5, "sum": 2, "kafka.timestamp": 7, "kafka.topic": "orders", "kafka.header.h": "1"}


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=3),
            st.recursive(st.floats() | st.sampled_from(["city,", "university,", "NaN,", "x: -Infinity }"]), st.lists),
            max_size=3,
        ),
        max_size=5,
    ),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",\n", ":\t")]),
    st.sampled_from([None, 1]),
)
def test_nan_and_infinity_are_found_wherever_they_stand(
    records: list[dict[str, Any]], separators: tuple[str, str], indent: int | None
) -> None:
    """Judged by what Python's reader takes for one."""
    payloads = [json.dumps(one, separators=separators, indent=indent).encode() for one in records]
    expected: list[int] = []
    for index, payload in enumerate(payloads):
        seen: list[str] = []
        json.loads(payload, parse_constant=seen.append)
        expected += [index] * bool(seen)
    texts, errors = JsonReader(JsonInputFormat(type="json")).read([None, *payloads], None)
    assert sorted(errors) == [0, *(index + 1 for index in expected)]
    assert [i for i, text in enumerate(texts) if not text.is_valid] == sorted(errors)
