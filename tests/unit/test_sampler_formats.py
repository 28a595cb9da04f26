"""The sampler on pasted records of each format."""

from __future__ import annotations

import base64
import io
import json
from decimal import Decimal

import fastavro
from google.protobuf import descriptor_pb2, message_factory  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from thriftpy2.parser import parse_fp
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.utils import serialize

from tests.support.pasted import JSON, TIMED, TYPED, only, sample
from tests.support.registry import SchemaRegistry


def test_csv_and_tsv() -> None:
    assert only(sample(b'1,"a,b",', input_format={"type": "csv", "columns": ["x", "y", "z"]})).row == {
        "x": "1",
        "y": "a,b",
    }
    assert only(sample(b"x\ty\n1\t2", input_format={"type": "tsv", "findColumnsFromHeader": True})).fields == {
        "x": "1",
        "y": "2",
    }


def test_a_flatten_spec_makes_fields() -> None:
    flat = {"fields": [{"type": "path", "name": "inner", "expr": "$.a.b"}], "useFieldDiscovery": False}
    assert only(sample(b'{"a": {"b": 7}}', input_format={**JSON, "flattenSpec": flat})).fields == {"inner": 7}


def test_kafka_s_format_has_the_topic_and_no_time_of_what_is_pasted() -> None:
    found = only(sample(b'{"a": 1}', input_format={"type": "kafka", "valueFormat": JSON}, topic="orders")).fields
    assert found == {"a": 1, "kafka.timestamp": None, "kafka.topic": "orders"}


def test_avro() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "t", "type": "long"}, {"name": "a", "type": "string"}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"t": 5, "a": "é"})
    spec = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": schema}}
    answer = sample(out.getvalue(), b"\x05", input_format=spec, schema=TIMED)
    assert answer.records[0].row == {"__time": 5, "a": "é"}
    assert answer.records[1].outcome == "unparseable"


def test_decimals_and_floats_are_shown_as_they_would_be_stored() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
    fields = [{"name": "price", "type": price}, {"name": "f", "type": "float"}, {"name": "cut", "type": price}]
    schema = {"type": "record", "name": "R", "fields": fields}
    cents = Decimal("1234567890123456.78")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"price": cents, "f": 0.1, "cut": cents})
    spec = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": schema}}
    columns = {"dimensionsSpec": {"dimensions": ["price", "f", {"name": "cut", "type": "double"}]}}
    record = only(sample(out.getvalue(), input_format=spec, schema=columns))
    assert record.row == {"price": "1234567890123456.78", "f": "0.1", "cut": 1234567890123456.8}
    assert record.outcome == "stored"


def test_protobuf() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    field = file.message_type.add(name="M").field.add(name="a", number=1)
    field.type, field.label = field.TYPE_STRING, field.LABEL_OPTIONAL
    pool = DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))(a="x")
    text = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()
    spec = {
        "type": "protobuf",
        "protoBytesDecoder": {"type": "inline", "descriptorString": text, "protoMessageType": "M"},
    }
    assert only(sample(message.SerializeToString(), input_format=spec)).row == {"a": "x"}


def test_thrift() -> None:
    idl = "struct S { 1: string a }"
    struct = parse_fp(io.StringIO(idl), "test_sampler_thrift", enable_cache=False).S(a="x")
    spec = {"type": "thrift", "thriftClass": "S", "thriftIdl": idl, "protocol": "binary"}
    assert only(sample(serialize(struct, TBinaryProtocolFactory()), input_format=spec)).row == {"a": "x"}


def test_schemas_of_a_registry_are_asked_for() -> None:
    registry = SchemaRegistry()
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    registry.schemas[7] = {"schema": json.dumps(schema)}
    registry.start()
    spec = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_registry", "url": registry.url}}
    record = b"\x00\x00\x00\x00\x07\x04"
    try:
        assert only(sample(record, input_format=spec, schema=TYPED)).row == {"a": 2}
    finally:
        registry.stop()
    failure = sample(record, input_format=spec).failure
    assert failure is not None
    assert (failure.place, failure.permanent) == ("inputFormat", False)
