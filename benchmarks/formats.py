"""What the decode benchmark decodes: the same five values in every format, about 100 bytes a record as JSON."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from thriftpy2.parser import parse_fp
from thriftpy2.protocol import TCompactProtocolFactory
from thriftpy2.utils import serialize

from ingestion.decode.envelope import Envelope

START = datetime(2025, 6, 1, tzinfo=UTC)
Values = dict[str, Any]
NAMES = ("time", "n", "kind", "value", "pad")
FIELDS = "time TIMESTAMP, n BIGINT, kind STRING, value BIGINT, pad STRING"
_AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": name, "type": "long" if name in ("n", "value") else "string"} for name in NAMES],
}
_IDL = "struct R { 1: string time, 2: i64 n, 3: string kind, 4: i64 value, 5: string pad }"
_DIMENSIONS = [{"name": "n", "type": "long"}, "kind", {"name": "value", "type": "long"}, "pad"]
_ROLLUP = {
    "dimensionsSpec": {"dimensions": ["kind"]},
    "metricsSpec": [
        {"type": "count", "name": "count"},
        {"type": "longSum", "name": "sum", "fieldName": "value"},
        {"type": "longMax", "name": "greatest", "fieldName": "n"},
    ],
    "granularitySpec": {"rollup": True, "queryGranularity": "MINUTE"},
}
_TRANSFORMS = [
    {"type": "expression", "name": "shown", "expression": "upper(kind) || '-' || n::VARCHAR", "language": "sql"},
    {"type": "expression", "name": "double", "expression": "value * 2", "language": "sql"},
]
_NESTED = [
    {"type": "path", "name": "kind", "expr": "$.of.kind"},
    {"type": "path", "name": "value", "expr": "$.of.values[1]"},
]


def _schema(**more: Any) -> dict[str, Any]:
    timestamp = {"column": "time", "format": "iso"}
    columns = {"dimensionsSpec": {"dimensions": _DIMENSIONS}, "granularitySpec": {"rollup": False}}
    return {"dataSource": "d", "timestampSpec": timestamp, **columns, **more}


@dataclass(frozen=True)
class Case:
    name: str
    payload: Callable[[Values], bytes]
    input_format: dict[str, Any]
    spark: str | None  # the SQL that does the same to a column ``value``, as far as Spark has it without further jars
    schema: dict[str, Any] = field(default_factory=_schema)
    in_envelope: bool = False


def values(count: int) -> Iterator[Values]:
    """Records within one day, each with its number."""
    for n in range(count):
        time_text = (START + timedelta(milliseconds=80 * n % 86_400_000)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        yield {"time": time_text, "n": n, "kind": f"k{n % 10}", "value": n % 1000, "pad": "x" * 24}


def envelope(count: int) -> Envelope:
    """Keys, times and one header, as Kafka has them."""
    headers = [("source", b"bench")]
    return Envelope("bench", [b"key"] * count, [1_748_736_000_000] * count, [headers] * count)


def cases() -> list[Case]:
    """All formats, JSON first."""
    as_json = f"SELECT r.* FROM (SELECT from_json(value, '{FIELDS}') AS r FROM records)"
    as_csv = f"SELECT r.* FROM (SELECT from_csv(value, '{FIELDS}') AS r FROM records)"
    as_tsv = f"SELECT r.* FROM (SELECT from_csv(value, '{FIELDS}', map('sep', '\\t')) AS r FROM records)"
    nested = "time TIMESTAMP, n BIGINT, pad STRING, of STRUCT<kind: STRING, values: ARRAY<BIGINT>>"
    as_nested = (
        "SELECT r.time, r.n, r.pad, r.of.kind AS kind, r.of.values[1] AS value "
        f"FROM (SELECT from_json(value, '{nested}') AS r FROM records)"
    )
    names = list(NAMES)
    kafka = {
        "type": "kafka",
        "valueFormat": {"type": "json"},
        "keyFormat": {"type": "tsv", "columns": ["key"]},
        "headerFormat": {"type": "string"},
    }
    dimensions = [*_DIMENSIONS, "kafka.key", "kafka.topic", "kafka.timestamp", "kafka.header.source"]
    return [
        Case("json", _json, {"type": "json"}, as_json),
        Case("json_flatten", _nested, {"type": "json", "flattenSpec": {"fields": _NESTED}}, as_nested),
        Case("csv", _delimited(","), {"type": "csv", "columns": names}, as_csv),
        Case("tsv", _delimited("\t"), {"type": "tsv", "columns": names}, as_tsv),
        Case("avro", _avro, _inline("avro_stream", schema=_AVRO), None),
        Case("protobuf", _protobuf_writer(), _inline("protobuf", descriptorString=_descriptor()), None),
        Case("thrift", _thrift_writer(), {"type": "thrift", "thriftClass": "R", "thriftIdl": _IDL}, None),
        Case(
            "kafka_json",
            _json,
            kafka,
            as_json.replace(" FROM", ", 'key' AS k, 'bench' AS topic, 1748736000000 AS ts, 'bench' AS h FROM", 1),
            _schema(dimensionsSpec={"dimensions": dimensions}),
            in_envelope=True,
        ),
        Case(
            "json_transforms",
            _json,
            {"type": "json"},
            f"SELECT *, concat(upper(kind), '-', n) AS shown, value * 2 AS double FROM ({as_json}) WHERE value > 100",
            _schema(
                dimensionsSpec={"dimensions": [*_DIMENSIONS, "shown", {"name": "double", "type": "long"}]},
                transformSpec={
                    "transforms": _TRANSFORMS,
                    "filter": {"type": "expression", "expression": "value > 100", "language": "sql"},
                },
            ),
        ),
        Case(
            "json_rollup",
            _json,
            {"type": "json"},
            "SELECT date_trunc('minute', time) AS time, kind, count(*), sum(value), max(n) "
            f"FROM ({as_json}) GROUP BY 1, 2",
            _schema(**_ROLLUP),
        ),
    ]


def _inline(kind: str, **decoder: Any) -> dict[str, Any]:
    if kind == "avro_stream":
        return {"type": kind, "avroBytesDecoder": {"type": "schema_inline", **decoder}}
    return {"type": kind, "protoBytesDecoder": {"type": "inline", **decoder}}


def _json(record: Values) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _nested(record: Values) -> bytes:
    inner = {"kind": record["kind"], "values": [0, record["value"]]}
    return _json({"time": record["time"], "n": record["n"], "pad": record["pad"], "of": inner})


def _delimited(delimiter: str) -> Callable[[Values], bytes]:
    return lambda record: delimiter.join(str(record[name]) for name in NAMES).encode()


def _avro(record: Values) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _AVRO, record)
    return out.getvalue()


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="bench.proto", syntax="proto3")
    message = file.message_type.add(name="R")
    for number, name in enumerate(NAMES, 1):
        proto_field = message.field.add(name=name, json_name=name, number=number)
        proto_field.label = proto_field.LABEL_OPTIONAL
        proto_field.type = proto_field.TYPE_INT64 if name in ("n", "value") else proto_field.TYPE_STRING
    return file


def _descriptor() -> str:
    return b64encode(descriptor_pb2.FileDescriptorSet(file=[_file()]).SerializeToString()).decode()


def _protobuf_writer() -> Callable[[Values], bytes]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("R"))
    return lambda record: bytes(kind(**record).SerializeToString())


def _thrift_writer() -> Callable[[Values], bytes]:
    kind: Any = parse_fp(io.StringIO(_IDL), "bench_thrift", enable_cache=False).R
    protocol = TCompactProtocolFactory()
    return lambda record: bytes(serialize(kind(**record), protocol))
