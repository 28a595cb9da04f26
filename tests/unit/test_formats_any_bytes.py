"""Any bytes at all, in every format: no crash, and every record ends in exactly one way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.access import Access
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.task.schema_registry import ConfluentRegistry
from tests.support.formats import HERE, ends, format_of, schema_of
from tests.support.registry import framed, running
from tests.unit.test_formats_avro import DATUM, SCHEMA, inline, written
from tests.unit.test_formats_protobuf import FILE, PAYLOAD
from tests.unit.test_formats_protobuf import inline as protobuf
from tests.unit.test_formats_thrift import SPEC as THRIFT
from tests.unit.test_formats_thrift import WRITTEN

FLATTEN = {"fields": [{"type": "path", "name": "x", "expr": "$..a"}, {"type": "root", "name": "a"}]}
CSV = {"type": "csv", "columns": ["t", "a"], "tryParseNumbers": True}
FORMATS: dict[str, dict[str, Any]] = {
    "json": {"type": "json", "flattenSpec": FLATTEN},
    "csv": CSV,
    "csv with a header": {"type": "csv", "findColumnsFromHeader": True},
    "tsv": {"type": "tsv", "columns": ["t", "a"], "listDelimiter": ","},
    "regex": {"type": "regex", "pattern": r"(?i)(\d+),(.*?)(\sx)?$", "columns": ["t", "a", "b"], "listDelimiter": ","},
    "lines": {"type": "lines"},
    "avro": inline(SCHEMA, extractUnionsByType=True),
    "avro with numbers": {
        "type": "avro_stream",
        "avroBytesDecoder": {"type": "multiple_schemas_inline", "schemas": {"1": SCHEMA}},
        "flattenSpec": FLATTEN,
    },
    "protobuf": protobuf([FILE]),
    "thrift": THRIFT,
    "thrift binary": {**THRIFT, "protocol": "binary"},
    "thrift compact": {**THRIFT, "protocol": "compact"},
    "thrift json": {**THRIFT, "protocol": "json"},
    "kafka": {
        "type": "kafka",
        "valueFormat": {"type": "json"},
        "keyFormat": CSV,
        "headerFormat": {"type": "string", "encoding": "UTF-16"},
        "headerColumnPrefix": "",
    },
}
SEEDS = [written(SCHEMA, DATUM), PAYLOAD, *WRITTEN.values(), b'{"t":1,"a":{"a":[1]}}', b'1,"a""b"', b"t,a\n1,2"]


def bent(seed: bytes) -> st.SearchStrategy[bytes]:
    """The record with a byte changed, or cut short, or with more behind."""
    place = st.integers(0, len(seed) - 1)
    return st.one_of(
        st.builds(lambda i, b: seed[:i] + bytes([b]) + seed[i + 1 :], place, st.integers(0, 255)),
        place.map(lambda i: seed[:i]),
        st.binary(max_size=4).map(lambda more: seed + more),
    )


BYTES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(SEEDS).flatmap(bent),
    st.text(alphabet='{}[]":,\t\n\r 01aet\ud800\0', max_size=20).map(lambda t: t.encode("utf-8", "surrogatepass")),
)
RECORDS = st.lists(st.none() | BYTES, max_size=8)


@pytest.fixture(scope="module")
def decoders() -> Iterator[Callable[[str], JsonDecoder]]:
    made: dict[str, JsonDecoder] = {}

    def decoder(name: str) -> JsonDecoder:
        if name not in made:
            made[name] = JsonDecoder(schema_of(), input_format=format_of(FORMATS[name]), memory_limit_bytes=2**28)
        return made[name]

    yield decoder
    for each in made.values():
        each.close()


def envelope_of(data: st.DataObject, count: int) -> Envelope:
    headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
    return Envelope(
        "topic",
        data.draw(st.lists(st.none() | BYTES, min_size=count, max_size=count)),
        data.draw(st.lists(st.none() | st.integers(0, 2**40), min_size=count, max_size=count)),
        data.draw(st.lists(headers, min_size=count, max_size=count)),
    )


@pytest.mark.parametrize("name", list(FORMATS))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(payloads=RECORDS, data=st.data())
def test_every_record_ends_once(
    decoders: Callable[[str], JsonDecoder], name: str, payloads: list[bytes | None], data: st.DataObject
) -> None:
    envelope = envelope_of(data, len(payloads)) if name == "kafka" else None
    found = decoders(name).decode(payloads, envelope=envelope)
    assert ends(found) == list(range(len(payloads)))
    assert all(0 < len(m) < 400 and "\n" not in m for m in found.unparseable.values())


@settings(max_examples=30)
@given(payloads=st.lists(BYTES.flatmap(lambda b: st.sampled_from([b, framed(1, b), framed(2, b)])), max_size=6))
def test_every_record_of_a_registry_ends_once(by_registry: JsonDecoder, payloads: list[bytes | None]) -> None:
    assert ends(by_registry.decode(payloads)) == list(range(len(payloads)))


@pytest.fixture(scope="module")
def by_registry() -> Iterator[JsonDecoder]:
    with running() as registry:
        registry.schemas[1] = {"schema": json.dumps(SCHEMA)}
        decoder = {"type": "schema_registry", "url": registry.url}
        spec = format_of({"type": "avro_stream", "avroBytesDecoder": decoder})
        made = JsonDecoder(schema_of(), input_format=spec, access=Access(ConfluentRegistry, address_policy=HERE))
        yield made
        made.close()
