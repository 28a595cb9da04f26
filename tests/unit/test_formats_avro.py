"""``avro_stream``: values, unions, decoders."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.avro import AvroSchema
from ingestion.decode.formats.base import BadRecord
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.formats import decoded, fault, format_of, row, rows, schema_of

SUB = {"type": "record", "name": "Sub", "fields": [{"name": "subInt", "type": "int"}]}
SCHEMA: dict[str, Any] = {
    "namespace": "org.apache.druid.data",
    "name": "User",
    "type": "record",
    "fields": [
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "FullName", "type": "string"},
        {"name": "Country", "type": ["null", "string"], "default": None},
        {"name": "someRecord", "type": SUB},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "raw", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
DATUM = {
    "t": datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC),
    "FullName": "Émile",
    "Country": None,
    "someRecord": {"subInt": 7},
    "tags": ["x", "y"],
    "counts": {"k": 2**40},
    "raw": b"\xff\x00",
    "kind": "B",
}


def written(schema: Any, datum: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return out.getvalue()


def inline(schema: Any, **options: Any) -> dict[str, Any]:
    return {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": schema}, **options}


def one_field(kind: Any, name: str = "v") -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind}]}


def test_a_record_with_all_kinds_of_values() -> None:
    spec = inline(SCHEMA, flattenSpec={"fields": [{"type": "path", "name": "sub", "expr": "$.someRecord.subInt"}]})
    found = decoded(spec, [written(SCHEMA, DATUM)])
    assert rows(found) == [
        {
            "sub": 7,
            "FullName": "Émile",
            "someRecord": '{"subInt":7}',
            "tags": '["x","y"]',
            "counts": '{"k":1099511627776}',
            "raw": "/wA=",
            "kind": "B",
        }
    ]
    assert found.rows.column("__time")[0].as_py().isoformat() == "2025-06-01T00:00:00+00:00"


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_number_is_told(kind: str, value: float) -> None:
    found = decoded(inline(one_field(kind)), [written(one_field(kind), {"v": value})])
    assert found.rows.column("v").to_pylist() == [None]
    assert found.processed_with_error == {0: "field 'v' has a number that is too large for a double"}


def test_bytes_as_text() -> None:
    schema = one_field({"type": "fixed", "name": "F", "size": 2})
    assert row(inline(schema), written(schema, {"v": b"ab"})) == {"v": "YWI="}
    assert row(inline(schema, binaryAsString=True), written(schema, {"v": b"ab"})) == {"v": "ab"}
    nested = one_field({"type": "array", "items": "bytes"})
    assert row(inline(nested, binaryAsString=True), written(nested, {"v": ["é".encode()]})) == {"v": '["é"]'}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, datetime.date(1970, 1, 11), 10),
        ({"type": "long", "logicalType": "timestamp-micros"}, datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), 0),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, Decimal("12.50"), 12.5),
        ({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}, Decimal(2**53 + 1), 2**53 + 1),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"type": "string", "logicalType": "someone's own"}, "x", "x"),
        ("boolean", True, True),
        ("double", 0.1, 0.1),
        ("float", 0.5, 0.5),
        ("long", -(2**63), -(2**63)),
        ("string", "\0\U0001f600", "\0\U0001f600"),
    ],
)
def test_values(kind: Any, value: Any, expected: Any) -> None:
    schema = one_field(kind)
    assert row(inline(schema), written(schema, {"v": value})) == {"v": expected}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
CENTS = Decimal("1234567890123456.78")


@pytest.mark.parametrize(
    ("kind", "value", "text", "as_json"),
    [
        (DECIMAL, CENTS, "1234567890123456.78", "1234567890123456.78"),
        (DECIMAL, Decimal("0.10"), "0.10", "0.10"),
        (DECIMAL, Decimal("12345678.50"), "12345678.50", "12345678.50"),
        ({**DECIMAL, "scale": 0}, Decimal(10**30), str(10**30), str(10**30)),
        ({"type": "map", "values": ["null", DECIMAL]}, {"k": CENTS}, "{k=1234567890123456.78}", f'{{"k":{CENTS}}}'),
        ({"type": "array", "items": DECIMAL}, [Decimal("0.10")], "0.10", "[0.10]"),
        ("float", 0.1, "0.1", "0.1"),
        ("float", 1e-10, "1.0E-10", "1.0E-10"),
        ("double", 0.1, "0.1", "0.1"),
        ({"type": "array", "items": "float"}, [0.1], "0.1", "[0.1]"),
        ({"type": "map", "values": "float"}, {"k": 0.1}, "{k=0.1}", '{"k":0.1}'),
        (["float", "string"], 0.1, "0.1", "0.1"),
    ],
)
def test_numbers_are_texts_with_the_digits_that_were_written(kind: Any, value: Any, text: str, as_json: str) -> None:
    """In a column of texts, and in one of JSON; at the top of a record, within it, and found by a path."""
    inner = one_field(kind) | {"name": "In"}
    for schema, datum, path in (
        (one_field(kind), {"v": value}, "$.v"),
        (one_field(inner, "in"), {"in": {"v": value}}, "$.in.v"),
        (one_field({"type": "array", "items": inner}, "in"), {"in": [{"v": value}]}, "$.in[*].v"),
    ):
        found = {"fields": [{"type": "path", "name": name, "expr": path} for name in ("text", "json")]}
        columns = schema_of(dimensions=["text", {"name": "json", "type": "json"}])
        expected = {"text": text, "json": as_json}
        if "*" in path:
            expected = {"text": text if as_json[0] != "[" else f"[{text}]", "json": f"[{as_json}]"}
        assert row(inline(schema, flattenSpec=found), written(schema, datum), schema=columns) == expected


@pytest.mark.parametrize("kind", ["double", "auto"])
def test_a_decimal_that_a_double_rounds_is_no_error(kind: str) -> None:
    """With errors, ``maxParseExceptions`` 0 would stop a task at its first decimal of 18 places."""
    schema = one_field(DECIMAL)
    columns = schema_of(dimensions=[{"name": "v", "type": kind}])
    payloads = [written(schema, {"v": v}) for v in (CENTS, Decimal("0.10"))]
    found = decoded(inline(schema), payloads, schema=columns)
    assert found.rows.column("v").to_pylist() == [1234567890123456.8, 0.1]
    assert found.processed_with_error == {}


def test_the_sum_of_decimals_that_doubles_round_has_no_error() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18}
    schema = one_field(kind)
    sums = schema_of(dimensions=["k"]).model_dump()
    sums["metricsSpec"] = [{"type": "doubleSum", "name": "s", "fieldName": "v"}]
    price = Decimal("1234567.123456789012345678")
    found = decoded(inline(schema), [written(schema, {"v": price})], schema=DataSchema.model_validate(sums))
    assert found.rows.column("s").to_pylist() == [float(price)]
    assert found.processed_with_error == {}


def test_decimals_have_the_digits_that_were_written_not_those_of_the_schema() -> None:
    narrow = one_field({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2})
    payload = written(one_field("bytes"), {"v": (123_456_789).to_bytes(4)})
    assert row(inline(narrow), payload, schema=schema_of(dimensions=["v"])) == {"v": "1234567.89"}


def test_more_bytes_than_a_number_has_hold_up_nobody() -> None:
    payloads = [written(one_field("bytes"), {"v": b"\x01" * size}) for size in (4_096, 1_000_000)]
    columns = schema_of(dimensions=[{"name": "v", "type": "double"}])
    found = decoded(inline(one_field(DECIMAL)), payloads, schema=columns)
    assert found.rows.column("v").to_pylist() == [None, None]
    assert found.processed_with_error == dict.fromkeys((0, 1), "field 'v' is not a number")


def test_a_text_that_begins_with_a_character_of_our_own_stays_a_text() -> None:
    """Unicode calls U+FDD0 no character, and yet a producer may write it."""
    texts = {"\ufdd012": "\ufdd012", "\ufdd0NaN": "\ufdd0NaN"}
    schema = one_field({"type": "map", "values": "string"})
    columns = schema_of(dimensions=[{"name": "v", "type": "json"}])
    found = row(inline(schema), written(schema, {"v": texts}), schema=columns)
    assert json.loads(found["v"]) == texts


def test_a_decimal_that_is_near_no_double_is_a_text_or_counted() -> None:
    schema = one_field({"type": "bytes", "logicalType": "decimal", "precision": 2_000, "scale": 1_001})
    payloads = [written(one_field("bytes"), {"v": data}) for data in (b"\x01", b"\x7f" * 1_000)]
    found = decoded(inline(schema), payloads, schema=schema_of(dimensions=["v"]))
    great = str(int.from_bytes(b"\x7f" * 1_000))
    assert found.rows.column("v").to_pylist() == ["1E-1001", f"{great[:-1001]}.{great[-1001:]}"]
    found = decoded(inline(schema), payloads, schema=schema_of(dimensions=[{"name": "v", "type": "double"}]))
    assert found.rows.column("v").to_pylist() == [0.0, None]
    assert found.processed_with_error == {1: "field 'v' is not a number"}


def test_a_uuid_is_the_text_that_was_written() -> None:
    kind = {"type": "string", "logicalType": "uuid"}
    odd = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"
    assert row(inline(one_field(kind)), written(one_field("string"), {"v": odd})) == {"v": odd}
    assert row(inline(one_field(kind)), written(one_field("string"), {"v": "none"})) == {"v": "none"}
    for wrap, value in (
        ({"type": "array", "items": "string"}, [odd]),
        ({"type": "map", "values": "string"}, {"k": odd}),
    ):
        inner = {name: kind if part == "string" else part for name, part in wrap.items()}
        found = row(inline(one_field(inner)), written(one_field(wrap), {"v": value}))
        assert json.loads(found["v"]) == value
    payload = written(one_field(["int", "string"]), {"v": odd})
    named = row(inline(one_field(["int", kind]), extractUnionsByType=True), payload)
    assert json.loads(named["v"]) == {"string": odd}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({"logicalType": "decimal"}, "BNI="),  # without a precision Java's library leaves it as bytes
        ({"logicalType": "decimal", "precision": "4"}, "BNI="),
        ({"logicalType": "decimal", "precision": 2, "scale": 3}, "BNI="),
        ({"logicalType": "decimal", "precision": 0}, "BNI="),
        ({"logicalType": "decimal", "precision": 2, "scale": 2}, 12.34),  # of more digits than it says
        ({"logicalType": "decimal", "precision": 9, "scale": 2}, 12.34),
    ],
)
@pytest.mark.parametrize("beneath", [{"type": "bytes"}, {"type": "fixed", "name": "F", "size": 2}])
def test_decimals_are_what_java_takes_them_for(kind: dict[str, Any], beneath: dict[str, Any], expected: Any) -> None:
    data = (1234).to_bytes(2)
    if beneath["type"] == "fixed" and kind.get("precision") == 9:
        expected = "BNI="  # two bytes hold no nine digits
    payload = data if beneath["type"] == "fixed" else b"\x04" + data
    assert row(inline(one_field(beneath | kind)), payload) == {"v": expected}


def test_a_default_of_another_type_harms_no_record() -> None:
    kind = {"type": "record", "name": "R", "fields": [{"name": "v", "type": "int", "default": "none"}]}
    assert row(inline(kind), b"\x0e") == {"v": 7}


A = {"type": "record", "name": "ns.A", "fields": [{"name": "a", "type": "int"}]}
B = {"type": "record", "name": "ns.B", "fields": [{"name": "b", "type": ["string", "ns.A"]}]}


@pytest.mark.parametrize("by_type", [False, True])
def test_a_union_of_records_at_the_top(by_type: bool) -> None:
    schema = AvroSchema([A, "null", B], by_type)
    assert schema.read(b"\x00\x0e", 0) == {"a": 7}
    assert schema.read(b"\x04\x00\x02x", 0) == {"b": {"string": "x"} if by_type else "x"}
    assert schema.read(b"\x04\x02\x0e", 0) == {"b": {"A": {"a": 7}} if by_type else {"a": 7}}
    with pytest.raises(BadRecord, match="null instead of a record"):
        schema.read(b"\x02", 0)
    by_references = AvroSchema(["ns.A", "ns.B"], by_type, [A, B])
    assert by_references.read(b"\x00\x0e", 0) == {"a": 7}
    assert by_references.read(b"\x02\x00\x02x", 0) == {"b": {"string": "x"} if by_type else "x"}
    with pytest.raises(ValueError, match="a union of records"):
        AvroSchema([A, "string"], by_type)


MULTI = ["null", "int", "string", {"type": "array", "items": "string"}, {"type": "map", "values": "long"}]
UNION_SUB = {"type": "record", "name": "ns.UnionSub", "fields": [{"name": "unionString", "type": "string"}]}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (MULTI, 5, '{"int":5}'),
        (MULTI, "x", '{"string":"x"}'),
        (MULTI, ["x"], '{"array":["x"]}'),
        (MULTI, {"k": 1}, '{"map":{"k":1}}'),
        (MULTI, None, None),
        (["null", "string"], "x", "x"),
        (["int", UNION_SUB], {"unionString": "x"}, '{"UnionSub":{"unionString":"x"}}'),
        (["null", UNION_SUB], {"unionString": "x"}, '{"unionString":"x"}'),
        (["int", {"type": "enum", "name": "E", "symbols": ["A"]}], "A", '{"E":"A"}'),
        (["string", {"type": "fixed", "name": "F", "size": 1}], b"a", '{"F":"YQ=="}'),
        (["int", "long"], 2**40, '{"long":1099511627776}'),
        (["float", "string"], 0.5, '{"float":0.5}'),
        (["string", DECIMAL], CENTS, '{"bytes":1234567890123456.78}'),
        (["boolean", "bytes"], True, '{"boolean":true}'),
    ],
)
def test_unions_by_type(kind: Any, value: Any, expected: Any) -> None:
    """By Druid's rules: primitives by the name of their type, named types by their own name, null is left out."""
    schema = one_field(kind)
    found = row(inline(schema, extractUnionsByType=True), written(schema, {"v": value}))
    assert found == ({} if expected is None else {"v": expected})


def test_a_union_within_a_type_that_holds_itself() -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "v", "type": ["int", "string"]}, {"name": "next", "type": ["null", "Tree"]}],
    }
    payload = written(tree, {"v": 1, "next": {"v": "x", "next": None}})
    found = row(inline(tree, extractUnionsByType=True), payload)
    assert json.loads(found["next"]) == {"v": {"string": "x"}, "next": None}
    assert found["v"] == '{"int":1}'


def test_several_schemas_by_number() -> None:
    other = one_field("long", "Name")
    spec = {
        "type": "avro_stream",
        "avroBytesDecoder": {"type": "multiple_schemas_inline", "schemas": {"1": one_field("string"), "2": other}},
    }
    payloads = [
        b"\x01\0\0\0\x01" + written(one_field("string"), {"v": "x"}),
        b"\x01\0\0\0\x02" + written(other, {"Name": 5}),
        b"\x01\0\0\0\x03",
        b"\x00\0\0\0\x01",
        b"\x01",
    ]
    found = decoded(spec, payloads)
    assert found.rows.select(["v", "Name"]).to_pylist() == [{"v": "x", "Name": None}, {"v": None, "Name": 5}]
    assert found.unparseable[2] == "the spec has no schema 3"
    assert found.unparseable[3] == found.unparseable[4]
    assert "does not begin with byte 1" in found.unparseable[3]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "the payload is empty"),
        (b"\x06ab", "not Avro of this schema: it ends too early"),
        (b"\x02ab", "not Avro of this schema: 1 bytes follow the record"),
        (b"\x02\xff", "UnicodeDecodeError"),
    ],
)
def test_bad_records(payload: bytes, message: str) -> None:
    assert fault(inline(one_field("string")), payload).startswith(message)


def test_a_schema_file(tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "v.avsc").write_text(json.dumps(one_field("string")))
    (folder / "bad.avsc").write_text("no JSON")
    (tmp_path / "outside.avsc").write_text(json.dumps(one_field("string")))
    (folder / "link.avsc").symlink_to(tmp_path / "outside.avsc")

    def by_file(place: str) -> dict[str, Any]:
        return {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_file", "file": place}}

    with pytest.raises(UnusableSchema, match="HEADGATE_SCHEMA_FOLDER"):
        decoded(by_file("v.avsc"), [])
    payload = written(one_field("string"), {"v": "x"})
    for place in ("v.avsc", f"file://{folder}/v.avsc", f"{folder}/v.avsc"):
        assert row(by_file(place), payload, schema_folder=str(folder)) == {"v": "x"}
    for place, message in (
        ("../outside.avsc", "is not in the schema folder"),
        (str(tmp_path / "outside.avsc"), "is not in the schema folder"),
        ("link.avsc", "is not in the schema folder"),
        ("/etc/passwd", "is not in the schema folder"),
        ("file:///etc/passwd", "is not in the schema folder"),
        ("http://somewhere/v.avsc", "is an address"),
        ("file://somewhere/v.avsc", "is an address"),
        ("missing.avsc", "No such file"),
        ("bad.avsc", "is not JSON"),
        (".", "can't be read"),
    ):
        with pytest.raises(UnusableSchema, match=message):
            decoded(by_file(place), [], schema_folder=str(folder))


@pytest.mark.parametrize("schema", [{"type": "recrd", "name": "R"}, {"type": "string"}, {}, {"type": "record"}])
def test_schemas_that_are_of_no_use(schema: dict[str, Any]) -> None:
    with pytest.raises(UnusableSchema, match="the Avro schema can't be used"):
        JsonDecoder(schema_of(), input_format=format_of(inline(schema)))


def test_a_field_of_its_own_keeps_its_digits_where_none_is_discovered() -> None:
    spec = inline(one_field(DECIMAL), flattenSpec={"useFieldDiscovery": False, "fields": []})
    assert row(spec, written(one_field(DECIMAL), {"v": CENTS}), schema=schema_of(dimensions=["v"])) == {"v": str(CENTS)}
