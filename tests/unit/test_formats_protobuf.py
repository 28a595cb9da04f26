"""``protobuf``: descriptor sets, names, and values by Protobuf's JSON mapping."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory  # type: ignore[import-untyped]

from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.protobuf import _build_pool
from ingestion.decode.json_decoder import JsonDecoder
from tests.support.formats import decoded, fault, format_of, row, rows, schema_of

# The message of Druid's tutorial.
METRICS = [
    ("unit", "string"),
    ("http_method", "string"),
    ("value", "int32"),
    ("timestamp", "string"),
    ("http_code", "string"),
    ("page", "string"),
    ("metricType", "string"),
    ("server", "string"),
]
VALUES = {
    "unit": "milliseconds",
    "http_method": "GET",
    "value": 44,
    "timestamp": "2017-04-06T02:36:22Z",
    "http_code": "200",
    "page": "/",
    "metricType": "request/latency",
    "server": "www1.example.com",
}


def file_of(name: str, messages: dict[str, list[tuple[str, str]]], package: str = "") -> Any:
    """A .proto file as protoc describes it. A field's type may be ``repeated …``; ``E`` is an enum with X=0, Y=1."""
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    enum = file.enum_type.add(name=f"E_{name.replace('.', '_')}")
    enum.value.add(name=f"X_{enum.name}", number=0)
    enum.value.add(name=f"Y_{enum.name}", number=1)
    for message, fields in messages.items():
        made = file.message_type.add(name=message)
        for number, (field, kind) in enumerate(fields, 1):
            _add_field(made, field, number, kind, enum.name)
    return file


def _add_field(message: Any, name: str, number: int, kind: str, enum: str) -> None:
    words = kind.split()
    field = message.field.add(name=name, number=number)
    field.json_name = "".join(w if i == 0 else w.capitalize() for i, w in enumerate(name.split("_")))
    field.label = field.LABEL_REPEATED if words[0] == "repeated" else field.LABEL_OPTIONAL
    plain = f"TYPE_{words[-1].upper()}"
    if words[-1] == "E":
        field.type, field.type_name = field.TYPE_ENUM, enum
    elif words[0] == "map":
        entry = message.nested_type.add(name=name.capitalize() + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, words[1], enum)
        _add_field(entry, "value", 2, words[2], enum)
        field.label, field.type, field.type_name = field.LABEL_REPEATED, field.TYPE_MESSAGE, entry.name
    elif plain in descriptor_pb2.FieldDescriptorProto.Type.keys():  # noqa: SIM118 - no dict
        field.type = descriptor_pb2.FieldDescriptorProto.Type.Value(plain)
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, words[-1]


def class_of(files: list[Any], name: str) -> Any:
    return message_factory.GetMessageClass(_build_pool(files).FindMessageTypeByName(name))


def message_of(files: list[Any], name: str, **values: Any) -> bytes:
    made = class_of(files, name)()
    pool = made.DESCRIPTOR.file.pool
    return bytes(json_format.ParseDict(values, made, descriptor_pool=pool).SerializeToString())


def inline(files: list[Any], name: str | None = None, **more: Any) -> dict[str, Any]:
    raw = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
    decoder = {"type": "inline", "descriptorString": b64encode(raw).decode()}
    return {"type": "protobuf", "protoBytesDecoder": decoder | ({"protoMessageType": name} if name else {}), **more}


FILE = file_of("metrics.proto", {"Metrics": METRICS})
PAYLOAD = message_of([FILE], "Metrics", **VALUES)


def test_the_documents_message() -> None:
    assert row(inline([FILE], "Metrics"), PAYLOAD) == VALUES


def test_fields_go_by_the_name_that_the_spec_uses() -> None:
    """That of the .proto, or of Protobuf's JSON, which is how Druid reads them."""
    schema = schema_of(dimensions=["httpMethod", "http_code"])
    assert row(inline([FILE]), PAYLOAD, schema=schema) == {"httpMethod": "GET", "http_code": "200"}
    spec = inline([FILE], flattenSpec={"fields": [{"type": "path", "name": "m", "expr": "$.httpMethod"}]})
    assert row(spec, PAYLOAD)["m"] == "GET"


ALL = file_of(
    "all.proto",
    {
        "Inner": [("n", "int32")],
        "All": [
            ("big", "int64"),
            ("unsigned", "uint64"),
            ("raw", "bytes"),
            ("flag", "bool"),
            ("ratio", "double"),
            ("kind", "E"),
            ("list", "repeated string"),
            ("inner", "Inner"),
            ("inners", "repeated Inner"),
            ("map", "map string int64"),
            ("by_number", "map int32 Inner"),
            ("time", ".google.protobuf.Timestamp"),
            ("took", ".google.protobuf.Duration"),
            ("wrapped", ".google.protobuf.Int64Value"),
            ("struct", ".google.protobuf.Struct"),
            ("any", ".google.protobuf.Any"),
            ("mask", ".google.protobuf.FieldMask"),
            ("kinds", "repeated E"),
            ("anys", "repeated .google.protobuf.Any"),
            ("any_by", "map string .google.protobuf.Any"),
        ],
    },
    package="p.q",
)
ALL.message_type[1].field[7].type_name = ALL.message_type[1].field[8].type_name = ".p.q.Inner"
ALL.dependency.extend(f"google/protobuf/{n}.proto" for n in ("timestamp", "duration", "wrappers", "struct", "any"))
ALL.dependency.append("google/protobuf/field_mask.proto")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"big": 2**62}, {"big": 2**62}),
        ({"raw": "/wA="}, {"raw": "/wA="}),
        ({"flag": True, "ratio": 0.5}, {"flag": True, "ratio": 0.5}),
        ({"kind": "Y_E_all_proto"}, {"kind": "Y_E_all_proto"}),
        ({"kind": 7}, {"kind": 7}),
        ({"list": ["x", "y"]}, {"list": '["x","y"]'}),
        ({"kinds": ["Y_E_all_proto"]}, {"kinds": '["Y_E_all_proto"]'}),
        ({"inner": {"n": 5}}, {"inner": '{"n":5}'}),
        ({"inners": [{"n": 5}, {}]}, {"inners": '[{"n":5},{}]'}),
        ({"map": {"k": 1}}, {"map": '{"k":1}'}),
        ({"by_number": {"7": {"n": 1}}}, {"by_number": '{"7":{"n":1}}'}),
        ({"time": "2025-06-01T00:00:00.500Z"}, {"time": "2025-06-01T00:00:00.500Z"}),
        ({"took": "1.500s"}, {"took": "1.500s"}),
        ({"wrapped": 0}, {"wrapped": 0}),  # a wrapper says that it is set
        ({"struct": {"a": [1, None, {"b": True}]}}, {"struct": '{"a":[1.0,null,{"b":true}]}'}),
        ({"mask": "a,bC"}, {"mask": "a,bC"}),
        ({"any": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1s"}}, None),
        ({"big": 0, "flag": False, "unsigned": 2**64 - 1}, {"unsigned": 2.0**64}),  # proto3 does not send zeros
    ],
)
def test_values(values: dict[str, Any], expected: dict[str, Any] | None) -> None:
    found = row(inline([ALL], "All"), message_of([ALL], "p.q.All", **values))
    if expected is None:
        assert json.loads(found["any"]) == values["any"]
    else:
        assert found == expected


def test_message_types_by_short_and_full_name_or_the_first() -> None:
    payload = message_of([ALL], "p.q.Inner", n=5)
    for name in ("Inner", "p.q.Inner", None):
        assert row(inline([ALL], name), payload) == {"n": 5}
    for name in ("Nobody", "q.All.Nobody"):
        with pytest.raises(UnusableSchema, match="has no message type"):
            JsonDecoder(schema_of(), input_format=format_of(inline([ALL], name)))


def test_an_any_has_the_fields_of_the_message_that_it_holds() -> None:
    """Called and written as those of any other message."""
    held = {"@type": "x/p.q.All", "big": 2**62, "byNumber": {"7": {"n": 1}}, "took": "1s", "kind": 7}
    again = {"@type": "y/p.q.All", "any": {"@type": "x/p.q.Inner", "n": 3}, "inners": [{}]}
    for given, expected in (
        (held, {"@type": "x/p.q.All", "big": 2**62, "kind": 7, "by_number": {"7": {"n": 1}}, "took": "1s"}),
        (again, {"@type": "y/p.q.All", "inners": [{}], "any": {"@type": "x/p.q.Inner", "n": 3}}),
        ({}, {}),
    ):
        found = row(inline([ALL], "All"), message_of([ALL], "p.q.All", any=given))
        assert json.loads(found["any"]) == expected
        several = message_of([ALL], "p.q.All", anys=[given, given], any_by={"k": given})
        found = row(inline([ALL], "All"), several)
        assert json.loads(found["anys"]) == [expected, expected]
        assert json.loads(found["any_by"]) == {"k": expected}


@pytest.mark.parametrize("url", ["x/unknown.Type", "p.q.E_all_proto", ""])
def test_an_any_of_a_type_that_is_not_known_keeps_its_bytes(url: str) -> None:
    made = class_of([ALL], "p.q.All")()
    made.any.type_url, made.any.value = url, b"\xff"
    found = row(inline([ALL], "All"), made.SerializeToString())
    assert json.loads(found["any"]) == {"@type": url, "value": "/w=="}


def test_an_any_that_holds_something_else_than_it_says() -> None:
    made = class_of([ALL], "p.q.All")()
    made.any.type_url, made.any.value = "x/p.q.Inner", b"\xff"
    expected = "the value in its google.protobuf.Any is not a Protobuf message of type p.q.Inner"
    assert fault(inline([ALL], "All"), made.SerializeToString()) == expected
    for _ in range(2_000):  # far deeper than anything that is read
        outer = class_of([ALL], "p.q.All")()
        outer.any.type_url, outer.any.value = "x/p.q.All", made.SerializeToString()
        made = outer
    assert fault(inline([ALL], "All"), made.SerializeToString())


@pytest.mark.parametrize(
    ("payload", "message"),
    [(b"\x0a\xff", "not a Protobuf message of type Metrics"), (b"\xff", "not a")],
)
def test_bad_records(payload: bytes | None, message: str) -> None:
    assert fault(inline([FILE]), payload).startswith(message)


def test_an_empty_message_is_a_record() -> None:
    assert rows(decoded(inline([FILE]), [b""])) == [{}]


def test_a_time_out_of_range_is_the_records_fault() -> None:
    made = class_of([ALL], "p.q.All")()
    made.time.seconds = 2**60
    assert fault(inline([ALL], "All"), made.SerializeToString())


def test_a_descriptor_file(tmp_path: Path) -> None:
    (tmp_path / "metrics.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[FILE]).SerializeToString())
    decoder = {"type": "file", "descriptor": f"file://{tmp_path}/metrics.desc", "protoMessageType": "Metrics"}
    spec = {"type": "protobuf", "protoBytesDecoder": decoder}
    with pytest.raises(UnusableSchema, match="HEADGATE_SCHEMA_FOLDER"):
        decoded(spec, [])
    assert row(spec, PAYLOAD, schema_folder=str(tmp_path)) == VALUES


@pytest.mark.parametrize("text", ["no base64!", "/w==", "CgA="])
def test_descriptors_that_are_of_no_use(text: str) -> None:
    decoder = {"type": "inline", "descriptorString": text}
    with pytest.raises(UnusableSchema):
        JsonDecoder(schema_of(), input_format=format_of({"type": "protobuf", "protoBytesDecoder": decoder}))


def test_a_float_is_the_shortest_text_that_gives_it_back() -> None:
    fields = [("f", "float"), ("l", "repeated float"), ("m", "map string float"), ("d", "double"), ("w", "Wrapped")]
    file = file_of("f.proto", {"F": fields})
    file.message_type[0].field[4].type_name = ".google.protobuf.FloatValue"
    file.dependency.append("google/protobuf/wrappers.proto")
    payload = message_of([file], "F", f=0.1, l=[0.1, 2.5], m={"k": 0.1}, d=0.1, w=0.1)
    texts = schema_of(dimensions=["f", "d", "w", {"name": "l", "type": "json"}, {"name": "m", "type": "json"}])
    found = row(inline([file]), payload, schema=texts)
    assert found == {"f": "0.1", "d": "0.1", "w": "0.1", "l": "[0.1,2.5]", "m": '{"k":0.1}'}
    number = schema_of(dimensions=[{"name": "f", "type": "double"}])
    assert row(inline([file]), payload, schema=number) == {"f": struct.unpack("f", struct.pack("f", 0.1))[0]}
