"""``kafka``: what Kafka says of a record, beside what its value holds."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import DecodeError
from tests.support.formats import decoded, rows, schema_of

DOCUMENTED = {
    "type": "kafka",
    "valueFormat": {"type": "json"},
    "timestampColumnName": "kafka.timestamp",
    "topicColumnName": "kafka.topic",
    "headerFormat": {"type": "string", "encoding": "UTF-8"},
    "headerColumnPrefix": "kafka.header.",
    "keyFormat": {"type": "tsv", "findColumnsFromHeader": False, "columns": ["x"]},
    "keyColumnName": "kafka.key",
}
VALUE = (
    b'{"channel":"#sv.wikipedia","timestamp":"2016-06-27T00:00:11.080Z","page":"Salo Toraut","delta":31,'
    b'"namespace":"Main"}'
)
Header = tuple[str, bytes | None]


def envelope(*records: tuple[bytes | None, int | None, list[Header]]) -> Envelope:
    return Envelope("wiki-edits", [r[0] for r in records], [r[1] for r in records], [r[2] for r in records])


def one(spec: dict[str, Any], payload: bytes | None, key: bytes | None = None, *headers: Header) -> dict[str, Any]:
    (only,) = rows(decoded(spec, [payload], envelope((key, 5, list(headers)))))
    return only


def test_the_documents_example() -> None:
    headers: list[Header] = [("env", b"development"), ("zone", b"z1")]
    found = decoded(DOCUMENTED, [VALUE], envelope((b"wiki-edit", 1680795276351, headers)))
    assert rows(found) == [
        {
            "channel": "#sv.wikipedia",
            "timestamp": "2016-06-27T00:00:11.080Z",
            "page": "Salo Toraut",
            "delta": 31,
            "namespace": "Main",
            "kafka.timestamp": 1680795276351,
            "kafka.topic": "wiki-edits",
            "kafka.header.env": "development",
            "kafka.header.zone": "z1",
            "kafka.key": "wiki-edit",
        }
    ]


def test_kafkas_time_as_the_rows_time() -> None:
    schema = schema_of(dimensions=["kafka.topic"])
    time = schema.timestampSpec.model_copy(update={"column": "kafka.timestamp", "format": "millis"})
    schema = schema.model_copy(update={"timestampSpec": time})
    found = decoded(DOCUMENTED, [VALUE], envelope((None, 1680795276351, [])), schema=schema)
    assert found.rows.column("__time")[0].as_py().isoformat() == "2023-04-06T15:34:36.351000+00:00"


def test_only_what_is_asked_for() -> None:
    spec = {"type": "kafka", "valueFormat": {"type": "json"}}
    assert one(spec, b'{"a":1}', b"key", ("h", b"v")) == {"a": 1, "kafka.timestamp": 5, "kafka.topic": "wiki-edits"}
    renamed = {**spec, "timestampColumnName": "ts", "topicColumnName": "from"}
    assert one(renamed, b'{"a":1}') == {"a": 1, "ts": 5, "from": "wiki-edits"}


def test_the_value_wins_then_headers_then_the_rest() -> None:
    spec = {**DOCUMENTED, "headerColumnPrefix": ""}
    found = one(spec, b'{"kafka.topic":"mine","a":null}', b"k", ("kafka.timestamp", b"x"), ("a", b"y"), ("b", b"1"))
    assert found == {"kafka.topic": "mine", "kafka.timestamp": "x", "b": "1", "kafka.key": "k"}


def test_headers() -> None:
    latin = {**DOCUMENTED, "headerFormat": {"type": "string", "encoding": "ISO-8859-1"}}
    assert one(latin, b"{}", None, ("h", b"\xe9"))["kafka.header.h"] == "é"
    found = one(DOCUMENTED, b"{}", None, ("h", b"first"), ("h", b"last"), ("n", None), ("bad", b"\xff"), ('q"', b'"'))
    assert found == {
        "kafka.timestamp": 5,
        "kafka.topic": "wiki-edits",
        "kafka.header.h": "last",
        "kafka.header.bad": "\ufffd",
        'kafka.header.q"': '"',
    }


@pytest.mark.parametrize(
    ("key_format", "key", "expected"),
    [
        ({"type": "json"}, b'{"id":7,"b":1}', 7),
        ({"type": "json"}, b'{"id":[1,2]}', "[1,2]"),
        ({"type": "json"}, b"{}", None),
        ({"type": "csv", "columns": ["x", "y"]}, b"a,b", "a"),
        ({"type": "tsv", "columns": ["x"]}, b'{"id":7}', '{"id":7}'),
        ({"type": "tsv", "columns": ["x"]}, None, None),
    ],
)
def test_keys(key_format: dict[str, Any], key: bytes | None, expected: Any) -> None:
    assert one({**DOCUMENTED, "keyFormat": key_format}, b"{}", key).get("kafka.key") == expected


def test_records_without_a_value_are_tombstones() -> None:
    found = decoded(DOCUMENTED, [None, b'{"a":1}'], envelope((b"k", 5, []), (b"k", 5, [])))
    assert (found.tombstones, found.unparseable, len(rows(found))) == ([0], {}, 1)


def test_bad_values_and_bad_keys() -> None:
    spec = {**DOCUMENTED, "keyFormat": {"type": "json"}}
    good: tuple[bytes | None, int | None, list[Header]] = (b'{"k":1}', None, [])
    records = envelope(good, good, good, good, (b"{", 1, []), (b"[1]", 1, []), (b"", 1, []), good, good)
    payloads = [b'{"a":1}', b"{,}", b"[1]", b'{"a":"}', b"{}", b"{}", b"{}", b"", b' {"a" : 2 } \n']
    found = decoded(spec, payloads, records)
    assert found.rows.column("a").to_pylist() == [1, None, 2]
    assert found.rows.column("kafka.key").to_pylist() == [1, 1, 1]
    assert {i: m.split(":")[0] for i, m in found.unparseable.items()} == {
        1: "not JSON",
        3: "not JSON",
        4: "the key",
        5: "the key",
        6: "the key",
        7: "the payload is empty",
    }


@pytest.mark.parametrize("value", [b"42", b"[1,2]", b"null", b" true ", b'"text"'])
def test_a_value_that_is_no_object_leaves_kafkas_own_fields(value: bytes) -> None:
    """Druid's tasks read it so; its sampler calls it unparseable."""
    own = {"kafka.timestamp": 5, "kafka.topic": "wiki-edits", "kafka.key": "k", "kafka.header.h": "v"}
    assert one(DOCUMENTED, value, b"k", ("h", b"v")) == own
    flattened = {"type": "json", "flattenSpec": {"fields": [{"type": "path", "name": "v", "expr": "$.a"}]}}
    assert one({**DOCUMENTED, "valueFormat": flattened}, value, b"k", ("h", b"v")) == own


def test_around_another_format() -> None:
    spec = {**DOCUMENTED, "valueFormat": {"type": "csv", "columns": ["t", "a"]}}
    assert one(spec, b"1,x", b"k")["a"] == "x"
    flattened = {"type": "json", "flattenSpec": {"fields": [{"type": "path", "name": "v", "expr": "$.a.b"}]}}
    assert one({**DOCUMENTED, "valueFormat": flattened}, b'{"a":{"b":3}}')["v"] == 3


def test_without_an_envelope_nothing_is_decoded() -> None:
    with pytest.raises(DecodeError, match="needs keys"):
        decoded(DOCUMENTED, [b"{}"])


def test_a_value_s_decimals_and_floats_keep_their_digits() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
    fields = [{"name": "price", "type": price}, {"name": "f", "type": {"type": "array", "items": "float"}}]
    schema = {"type": "record", "name": "R", "fields": fields}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"price": Decimal("0.10"), "f": [0.1, 2.5]})
    value = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": schema}}
    flat = {"fields": [{"type": "path", "name": "first", "expr": "$.f[0]"}]}
    columns = schema_of(dimensions=["price", "f", "first", "kafka.key"])
    for one_value in (value, {**value, "flattenSpec": flat}):
        spec = {**DOCUMENTED, "valueFormat": one_value}
        found = rows(decoded(spec, [out.getvalue()], envelope((b"7.50", 5, [])), schema=columns))
        first = {"first": "0.1"} if "flattenSpec" in one_value else {}
        assert found == [{"price": "0.10", "f": ["0.1", "2.5"], "kafka.key": "7.50", **first}]
