# ruff: noqa: E501 - what is asked stands in one line with its like
"""What is asked of the input format ``kafka``, for ``druid_corpus``: records with keys, headers and times in a topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOPIC = "recorded-topic"  # what is in the answers in place of the topic that was made for them
BROKER = "broker:9092"
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Record:
    """One of Kafka's."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    time_ms: int = 1_710_058_530_123


Asked = tuple[str, tuple[Record, ...], dict[str, Any], dict[str, Any], dict[str, Any]]
_T = {"column": "t", "format": "millis"}
_KAFKAS = {"column": "kafka.timestamp", "format": "millis"}
_ALL: dict[str, Any] = {"dimensions": []}
_TYPED: dict[str, Any] = {"useSchemaDiscovery": True}
_JSON: dict[str, Any] = {"type": "json"}
_TSV: dict[str, Any] = {"type": "tsv", "columns": ["k"], "findColumnsFromHeader": False}
_H: dict[str, Any] = {"headerFormat": {"type": "string"}}
_VALUE = b'{"t":0,"a":"x"}'
_ONE = (Record(_VALUE, b"key", (("h", b"v"), ("n", b"5"))),)


def asked_of_kafka() -> Iterator[Asked]:
    """Name, records, what the format has besides its type and the value's format, dimensionsSpec, timestampSpec."""
    yield "alone", _ONE, {}, _ALL, _T
    yield "Kafka's time is the row's", _ONE, {}, _ALL, _KAFKAS
    yield "Kafka's time, null timestampSpec", _ONE, {}, _ALL, {"column": "kafka.timestamp"}
    yield "no timestampSpec's column", _ONE, {}, _ALL, {"column": "missing", "missingValue": "2020-01-01"}
    for name, dims in (("strings", _ALL), ("typed", _TYPED)):
        more = {**_H, "keyFormat": _TSV}
        yield f"headers and key, {name}", _ONE, more, dims, _T
    yield "null formats", _ONE, {"headerFormat": None, "keyFormat": None}, _ALL, _T
    yield (
        "null names",
        _ONE,
        {**_H, "headerColumnPrefix": None, "keyColumnName": None, "timestampColumnName": None, "topicColumnName": None},
        _ALL,
        _T,
    )
    yield (
        "names",
        _ONE,
        {
            **_H,
            "keyFormat": _TSV,
            "headerColumnPrefix": "",
            "keyColumnName": "key",
            "timestampColumnName": "at",
            "topicColumnName": "from",
        },
        _ALL,
        _T,
    )
    yield (
        "names that are the value's",
        _ONE,
        {
            **_H,
            "keyFormat": _TSV,
            "headerColumnPrefix": "",
            "keyColumnName": "a",
            "timestampColumnName": "a",
            "topicColumnName": "a",
        },
        _ALL,
        _T,
    )
    yield (
        "two of one name",
        _ONE,
        {**_H, "keyFormat": _TSV, "headerColumnPrefix": "", "keyColumnName": "h", "topicColumnName": "n"},
        _ALL,
        _T,
    )
    yield (
        "named dimensions",
        _ONE,
        {**_H, "keyFormat": _TSV},
        {
            "dimensions": [
                "a",
                "kafka.header.h",
                "kafka.key",
                {"type": "long", "name": "kafka.timestamp"},
                {"type": "long", "name": "kafka.header.n"},
            ]
        },
        _T,
    )
    yield "a header that comes twice", (Record(_VALUE, None, (("h", b"1"), ("h", b"2"))),), _H, _ALL, _T
    yield "a header that is null", (Record(_VALUE, None, (("h", None), ("i", b""))),), _H, _ALL, _T
    yield "a header that is no UTF-8", (Record(_VALUE, None, (("h", b"\xff\xe9"),)),), _H, _ALL, _T
    for encoding in ("UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16BE", "UTF-16LE", "latin1", "nonsense", None):
        yield (
            f"headers in {encoding}",
            (Record(_VALUE, None, (("h", b"\x00\xe9"),)),),
            {"headerFormat": {"type": "string", "encoding": encoding}},
            _ALL,
            _T,
        )
    yield "no such header format", _ONE, {"headerFormat": {"type": "json"}}, _ALL, _T
    yield "no key", (Record(_VALUE), Record(_VALUE, b"")), {"keyFormat": _TSV}, _ALL, _T
    for name, key in (
        ("an object", b'{"id":7,"b":1}'),
        ("a number", b"7"),
        ("a text", b'"x"'),
        ("a list", b"[1]"),
        ("null", b"null"),
        ("broken", b"{"),
        ("empty", b"{}"),
        ("two", b'{"a":1}{"a":2}'),
        ("nothing", b""),
    ):
        yield f"a key in JSON: {name}", (Record(_VALUE, key),), {"keyFormat": _JSON}, _ALL, _T
    yield "a key in csv", (Record(_VALUE, b'"x,y",z'),), {"keyFormat": {"type": "csv", "columns": ["p", "q"]}}, _ALL, _T
    yield (
        "a key in csv with a header",
        (Record(_VALUE, b"p,q\n1,2"),),
        {"keyFormat": {"type": "csv", "findColumnsFromHeader": True}},
        _ALL,
        _T,
    )
    yield "a key of two lines", (Record(_VALUE, b"x\ny"),), {"keyFormat": _TSV}, _ALL, _T
    yield (
        "a key by a pattern",
        (Record(_VALUE, b"id-7"),),
        {"keyFormat": {"type": "regex", "pattern": "id-(\\d+)", "columns": ["k"]}},
        _ALL,
        _T,
    )
    yield (
        "a key as a line",
        (Record(_VALUE, b"as it is"),),
        {"keyFormat": {"type": "regex", "pattern": "(.*)", "columns": ["k"]}},
        _TYPED,
        _T,
    )
    yield "no value", (Record(None, b"k", (("h", b"v"),)),), {**_H, "keyFormat": _TSV}, _ALL, _KAFKAS
    yield "no value, the value's time", (Record(None, b"k"),), {"keyFormat": _TSV}, _ALL, _T
    yield "no value, no key", (Record(None),), {}, _ALL, _KAFKAS
    yield "an empty value", (Record(b"", b"k"),), {"keyFormat": _TSV}, _ALL, _KAFKAS
    yield "a broken value", (Record(b"{", b"k"), Record(_VALUE, b"k")), {"keyFormat": _TSV}, _ALL, _KAFKAS
    yield "a value that is no object", (Record(b"[1]"), Record(b"5")), {}, _ALL, _KAFKAS
    yield "no value's format", _ONE, {"valueFormat": None}, _ALL, _T
    yield (
        "a value in csv",
        (Record(b"0,x,y", b"k"),),
        {"valueFormat": {"type": "csv", "columns": ["t", "a", "b"]}, "keyFormat": _TSV},
        _ALL,
        _T,
    )
    yield (
        "a value in csv with a header",
        (Record(b"t,a\n0,x", b"k"),),
        {"valueFormat": {"type": "csv", "findColumnsFromHeader": True}},
        _ALL,
        _T,
    )
    yield (
        "a value by a pattern",
        (Record(b"0 x"),),
        {"valueFormat": {"type": "regex", "pattern": "(\\d+) (\\w)", "columns": ["t", "a"]}},
        _ALL,
        _T,
    )
    flatten = {
        "fields": [{"type": "path", "name": "b", "expr": "$.o.b"}, {"type": "path", "name": "kafka.key", "expr": "$.a"}]
    }
    yield (
        "a value that is flattened",
        (Record(b'{"t":0,"a":"x","o":{"b":1}}', b"k"),),
        {"valueFormat": {"type": "json", "flattenSpec": flatten}, "keyFormat": _TSV},
        _ALL,
        _T,
    )
    yield (
        "a value with Kafka's names",
        (Record(b'{"t":0,"kafka.key":"own","kafka.timestamp":"5"}', b"k"),),
        {"keyFormat": _TSV},
        _ALL,
        _T,
    )
    yield (
        "several values in one",
        (Record(b'{"t":0,"a":1}\n{"t":1,"a":2}', b"k", (("h", b"v"),)),),
        {**_H, "keyFormat": _TSV},
        _ALL,
        _T,
    )


def body_of(asked: Asked) -> dict[str, Any]:
    """For the sampler."""
    _, records, more, dimensions, time = asked
    schema = {
        "dataSource": "recorded",
        "timestampSpec": time,
        "dimensionsSpec": dimensions,
        "granularitySpec": {"rollup": False},
    }
    reading = {
        "type": "kafka",
        "topic": TOPIC,
        "consumerProperties": {"bootstrap.servers": BROKER},
        "useEarliestOffset": True,
        "inputFormat": {"type": "kafka", "valueFormat": _JSON, **more},
    }
    spec = {"type": "kafka", "dataSchema": schema, "ioConfig": reading, "tuningConfig": {"type": "kafka"}}
    return {"type": "kafka", "spec": spec, "samplerConfig": {"numRows": len(records), "timeoutMs": 5000}}
