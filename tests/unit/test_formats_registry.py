"""Formats whose schemas a registry has: the wire format, references, and the registry being away."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from ingestion.decode.errors import RegistryUnreachable, UnusableSchema
from ingestion.decode.formats import registry as formats_registry
from ingestion.decode.formats.access import Access
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.task.schema_registry import ConfluentRegistry
from tests.support.formats import HERE, decoded, format_of, rows, schema_of
from tests.support.registry import SchemaRegistry, framed, running
from tests.unit.test_formats_avro import SUB, one_field, written
from tests.unit.test_formats_protobuf import METRICS, file_of, message_of

STRINGS = one_field("string")


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as made:
        made.schemas[1] = {"schema": json.dumps(STRINGS)}
        yield made


def avro_by(registry: SchemaRegistry, **more: Any) -> dict[str, Any]:
    return {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_registry", "url": registry.url, **more}}


def decoder_by(spec: dict[str, Any]) -> JsonDecoder:
    return JsonDecoder(schema_of(), input_format=format_of(spec), access=Access(ConfluentRegistry, address_policy=HERE))


def test_avro_by_its_registered_schema(registry: SchemaRegistry) -> None:
    registry.schemas[2] = {"schema": json.dumps(one_field("long", "n")), "schemaType": "AVRO"}
    payloads = [framed(1, written(STRINGS, {"v": f"x{i}"})) for i in range(50)]
    payloads += [framed(2, written(one_field("long", "n"), {"n": i})) for i in range(50)]
    found = decoded(avro_by(registry), payloads, open_registry=ConfluentRegistry)
    assert rows(found) == [{"v": f"x{i}"} for i in range(50)] + [{"n": i} for i in range(50)]
    assert len(registry.asked) == 2


def test_what_is_wrong_with_a_record(registry: SchemaRegistry) -> None:
    registry.schemas[3] = {"schema": "{}", "schemaType": "JSON"}
    registry.schemas[4] = {"schema": '{"type": "nonsense"}'}
    good = framed(1, written(STRINGS, {"v": "x"}))
    bad = [framed(9, b""), framed(3, b""), framed(4, b""), framed(1, b"", head=1), b"\0\0", b"{}", b""]
    payloads = [good, *bad, None, b"\0" + (1).to_bytes(8) + b"\x02x"]
    found = decoded(avro_by(registry), [*payloads, good], open_registry=ConfluentRegistry)
    assert found.rows.column("v").to_pylist() == ["x", "x"]
    assert found.unparseable[1] == f"the schema registry {registry.url} has no schema 9"
    assert found.unparseable[2] == "schema 3 is of type JSON, not AVRO"
    assert found.unparseable[3].startswith("schema 4 can't be used")
    assert found.unparseable[4].endswith("it begins with byte 1, not 0")
    assert found.unparseable[5] == found.unparseable[6] == "shorter than the 5 bytes that name its schema"
    assert found.unparseable[7] == "the payload is empty"
    assert "Apicurio's serializers write ids of eight bytes" in found.unparseable[9]
    assert (len(found.unparseable), found.tombstones) == (8, [8])


def test_an_unknown_schema_is_not_asked_for_again_at_once(registry: SchemaRegistry) -> None:
    decoder = decoder_by(avro_by(registry))
    for _ in range(3):
        assert list(decoder.decode([framed(9, b"")] * 20).unparseable) == list(range(20))
    decoder.close()
    assert len(registry.asked) == 1


def test_references(registry: SchemaRegistry) -> None:
    outer = one_field("ns.Outer2")
    middle = {**one_field("Sub", "s"), "name": "ns.Outer2"}
    middle["fields"][0]["type"] = "ns.Sub"
    registry.schemas[5] = {
        "schema": json.dumps(outer),
        "references": [{"name": "ns.Outer2", "subject": "middle", "version": 2}],
    }
    registry.subjects["middle", 2] = {
        "subject": "middle",
        "version": 2,
        "id": 6,
        "schema": json.dumps(middle),
        "references": [{"name": "ns.Sub", "subject": "inner", "version": 1}],
    }
    inner = {**SUB, "name": "ns.Sub"}
    registry.subjects["inner", 1] = {"subject": "inner", "version": 1, "id": 7, "schema": json.dumps(inner)}
    found = decoded(avro_by(registry), [framed(5, b"\x0e")], open_registry=ConfluentRegistry)
    assert rows(found) == [{"v": '{"s":{"subInt":7}}'}]


def test_a_registry_that_is_down_marks_no_record(registry: SchemaRegistry) -> None:
    decoder = decoder_by(avro_by(registry))
    good = framed(1, written(STRINGS, {"v": "x"}))
    registry.stop()
    with pytest.raises(RegistryUnreachable, match="does not answer") as caught:
        decoder.decode([good, b"bad"])
    assert not caught.value.permanent
    registry.start()
    assert decoder.decode([good]).rows.column("v").to_pylist() == ["x"]
    registry.stop()  # what it has read it keeps
    assert decoder.decode([good]).rows.column("v").to_pylist() == ["x"]
    decoder.close()


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_registry_that_refuses_marks_no_record(registry: SchemaRegistry, status: int) -> None:
    registry.status = status
    decoder = decoder_by(avro_by(registry))
    with pytest.raises(RegistryUnreachable) as caught:
        decoder.decode([framed(1, written(STRINGS, {"v": "x"}))])
    decoder.close()
    assert str(status) in str(caught.value)
    assert caught.value.permanent == (status in (401, 403))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("first", [True, False])
def test_a_schema_that_alone_is_refused_is_its_records_fault_after_a_while(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    registry.statuses[9] = 500
    good, bad = framed(1, written(STRINGS, {"v": "x"})), framed(9, b"")
    decoder = decoder_by(avro_by(registry))
    if not first:
        decoder.decode([good])
    with pytest.raises(RegistryUnreachable, match="answers with status 500"):
        decoder.decode([bad, good])
    monkeypatch.setattr(formats_registry, "REFUSED_FOR_S", 0.0)
    found = decoder.decode([bad, good])
    assert found.unparseable == {
        0: f"the schema registry has refused schema 9, and no other, for 0 s: {registry.url} answers with status 500"
    }
    assert found.rows.column("v").to_pylist() == ["x"]
    decoder.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_registry_that_is_busy_for_one_schema_is_waited_for(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(formats_registry, "REFUSED_FOR_S", 0.0)
    registry.statuses[9] = status
    decoder = decoder_by(avro_by(registry))
    for _ in range(3):
        with pytest.raises(RegistryUnreachable, match=f"answers with status {status}"):
            decoder.decode([framed(9, b"")])
    decoder.close()


@pytest.mark.parametrize("away_first", [True, False])
def test_a_schema_is_not_refused_while_another_address_is_away(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, away_first: bool
) -> None:
    monkeypatch.setattr(formats_registry, "REFUSED_FOR_S", 0.0)
    registry.statuses[9] = 500
    urls = ["http://127.0.0.1:1", registry.url][:: 1 if away_first else -1]
    decoder = decoder_by({"type": "avro_stream", "avroBytesDecoder": {"type": "schema_registry", "urls": urls}})
    for _ in range(3):
        with pytest.raises(RegistryUnreachable, match="does not answer"):
            decoder.decode([framed(9, b"")])
    decoder.close()


def test_an_old_refusal_is_forgotten(registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two refusals with a long time between them are not one that lasted for all of it."""
    monkeypatch.setattr(formats_registry, "REFUSED_FOR_S", 1e-9)
    monkeypatch.setattr(formats_registry, "REFUSAL_KEPT_S", 0.0)
    registry.statuses[9] = 500
    decoder = decoder_by(avro_by(registry))
    for _ in range(3):
        with pytest.raises(RegistryUnreachable, match="answers with status 500"):
            decoder.decode([framed(9, b"")])
    decoder.close()


def test_a_registry_that_is_away_is_waited_for_however_long(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats_registry, "REFUSED_FOR_S", 0.0)
    registry.status = 503
    decoder = decoder_by(avro_by(registry))
    for _ in range(3):
        with pytest.raises(RegistryUnreachable):
            decoder.decode([framed(9, b"")])
    decoder.close()


def test_a_registry_whose_code_is_the_status_has_no_such_schema(registry: SchemaRegistry) -> None:
    """Apicurio's, which answers other questions."""
    registry.statuses[9] = 404
    found = decoded(avro_by(registry), [framed(9, b"")], open_registry=ConfluentRegistry)
    assert found.unparseable == {0: f"the schema registry {registry.url} has no schema 9"}


def test_one_address_that_is_away_may_yet_take_the_login(registry: SchemaRegistry) -> None:
    registry.status = 401
    decoder = {"type": "schema_registry", "urls": [registry.url, "http://127.0.0.1:1"]}
    made = decoder_by({"type": "avro_stream", "avroBytesDecoder": decoder})
    with pytest.raises(RegistryUnreachable, match="does not answer") as caught:
        made.decode([framed(1, b"")])
    made.close()
    assert not caught.value.permanent


def test_a_second_address_is_tried(registry: SchemaRegistry) -> None:
    decoder = {"type": "schema_registry", "urls": ["http://127.0.0.1:1", registry.url]}
    payload = framed(1, written(STRINGS, {"v": "x"}))
    found = decoded({"type": "avro_stream", "avroBytesDecoder": decoder}, [payload], open_registry=ConfluentRegistry)
    assert rows(found) == [{"v": "x"}]


def test_a_decoder_without_a_registrys_client_refuses(registry: SchemaRegistry) -> None:
    with pytest.raises(UnusableSchema, match="no schema registry can be asked"):
        JsonDecoder(schema_of(), input_format=format_of(avro_by(registry)))


def test_protobuf_by_its_registered_file(registry: SchemaRegistry) -> None:
    common = file_of("common.proto", {"Common": [("id", "int64")]})
    main = file_of("main.proto", {"First": [("a", "string")], "Metrics": METRICS, "Has": [("c", "Common")]})
    main.dependency.append("common.proto")
    registry.schemas[1] = {
        "schema": b64encode(main.SerializeToString()).decode(),
        "schemaType": "PROTOBUF",
        "references": [{"name": "common.proto", "subject": "common", "version": 1}],
    }
    registry.subjects["common", 1] = {
        "subject": "common",
        "version": 1,
        "id": 2,
        "schema": b64encode(common.SerializeToString()).decode(),
        "schemaType": "PROTOBUF",
    }
    spec = {"type": "protobuf", "protoBytesDecoder": {"url": registry.url}}  # schema_registry when no type is given
    first = message_of([common, main], "First", a="x")
    metrics = message_of([common, main], "Metrics", page="/", value=44)
    payloads = [
        framed(1, b"\0" + first),
        framed(1, b"\x02\0" + first),  # one index: 0
        framed(1, b"\x02\x02" + metrics),  # one index: 1
        framed(1, b"\x02\x08" + metrics),
        framed(1, b"\x02"),
        framed(1, b"\xff\xff\xff\xff\x0f"),
        framed(1, b"\0\x0a\xff"),
    ]
    found = decoded(spec, payloads, open_registry=ConfluentRegistry)
    assert found.rows.select(["a", "page", "value"]).to_pylist() == [
        {"a": "x", "page": None, "value": None},
        {"a": "x", "page": None, "value": None},
        {"a": None, "page": "/", "value": 44},
    ]
    assert found.unparseable[3] == "its schema has no message at index [4]"
    assert "does not end" in found.unparseable[4]
    assert "levels deep" in found.unparseable[5]
    assert found.unparseable[6] == "not a Protobuf message of type First"
    assert "format=serialized" in registry.asked[0]


def test_protobuf_by_a_registry_that_only_has_the_text(registry: SchemaRegistry) -> None:
    registry.schemas[1] = {"schema": 'syntax = "proto3"; message A {}', "schemaType": "PROTOBUF"}
    spec = {"type": "protobuf", "protoBytesDecoder": {"type": "schema_registry", "url": registry.url}}
    found = decoded(spec, [framed(1, b"\0")], open_registry=ConfluentRegistry)
    assert "serialized descriptor" in found.unparseable[0]


IMPORTED = [
    ("prices", "repeated .google.type.Money"),
    ("days", "map string .google.type.Date"),
    ("exact", ".confluent.type.Decimal"),
    ("card", "string"),
    ("any", ".google.protobuf.Any"),
]


@pytest.mark.parametrize("decimal", ["type", "types"])  # where it is, and where Confluent's client had it before
def test_protobuf_that_imports_what_confluents_client_knows(registry: SchemaRegistry, decimal: str) -> None:
    """The registry gives no reference for these."""
    file = file_of("order.proto", {"Order": IMPORTED})
    file.dependency.extend(["google/type/money.proto", "google/type/date.proto", "google/protobuf/any.proto"])
    file.dependency.extend(["confluent/meta.proto", f"confluent/{decimal}/decimal.proto"])
    file.message_type[0].field[3].options.MergeFromString(b"\x82\x44\x05\x1a\x03PII")  # (confluent.field_meta).tags
    registry.schemas[1] = {"schema": b64encode(file.SerializeToString()).decode(), "schemaType": "PROTOBUF"}
    message = message_of(
        [file],
        "Order",
        prices=[{"currencyCode": "EUR", "units": 2**60, "nanos": 5}, {"units": 1}],
        days={"due": {"year": 2026, "month": 2, "day": 28}},
        exact={"value": "AN4=", "precision": 3, "scale": 2},
        card="4111",
        any={"@type": "t/google.type.Money", "units": 7},
    )
    spec = {"type": "protobuf", "protoBytesDecoder": {"url": registry.url}}
    assert rows(decoded(spec, [framed(1, b"\0" + message)], open_registry=ConfluentRegistry)) == [
        {
            "prices": f'[{{"currency_code":"EUR","units":{2**60},"nanos":5}},{{"units":1}}]',
            "days": '{"due":{"year":2026,"month":2,"day":28}}',
            "exact": '{"value":"AN4=","precision":3,"scale":2}',
            "card": "4111",
            "any": '{"@type":"t/google.type.Money","units":7}',
        }
    ]
    assert len(registry.asked) == 1


@pytest.mark.parametrize("name", ["acme/unknown.proto", "google/type/unknown.proto", "google/type/../x.proto"])
def test_protobuf_that_imports_what_nobody_has(registry: SchemaRegistry, name: str) -> None:
    file = file_of("a.proto", {"A": [("a", "string")]})
    file.dependency.append(name)
    registry.schemas[1] = {"schema": b64encode(file.SerializeToString()).decode(), "schemaType": "PROTOBUF"}
    spec = {"type": "protobuf", "protoBytesDecoder": {"url": registry.url}}
    found = decoded(spec, [framed(1, b"\0")], open_registry=ConfluentRegistry)
    assert found.unparseable[0].startswith("schema 1 can't be used: ")
    assert f"Depends on file '{name}'" in found.unparseable[0]
