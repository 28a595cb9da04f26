"""Every format in the decoder's child process: it is told of the format, and gives back what this process would."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import RegistryUnreachable
from ingestion.decode.formats.access import Access
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.task.decoding import CHILD
from tests.support.formats import HERE, ends, format_of, schema_of
from tests.support.registry import SchemaRegistry, framed, running
from tests.support.warm_decoder import warm, warm_python
from tests.unit.test_formats_any_bytes import FORMATS, SEEDS
from tests.unit.test_formats_avro import written
from tests.unit.test_formats_kafka import DOCUMENTED, envelope
from tests.unit.test_formats_registry import STRINGS, avro_by

__all__ = ["warm", "warm_python"]  # fixtures


@pytest.mark.usefixtures("warm")
def test_each_decodes_as_this_process_does() -> None:
    """A process for each format, forked by one that has loaded what they need."""
    count = len(SEEDS)
    envelope = Envelope("topic", [b"1,2"] * count, [1] * count, [[("h", b"\0h")]] * count)
    different = []
    for name, form in FORMATS.items():
        spec = format_of(form)
        here = JsonDecoder(schema_of(), input_format=spec)
        expected = here.decode(SEEDS, envelope=envelope)
        here.close()
        with IsolatedDecoder(schema_of(), input_format=spec, child_module=CHILD) as child:
            found = child.decode(SEEDS, envelope=envelope)
        if found != expected:
            different.append((name, found, expected))
    assert not different


@pytest.mark.usefixtures("warm")
def test_kafkas_own_fields_of_records_that_kill() -> None:
    payloads: list[bytes | None] = [b'{"a":1}', b"KILL", None, b"?", b'{"a":2}']
    numbered: list[Any] = [(f"k{i}".encode(), i, [("h", f"{i}".encode())]) for i in range(5)]
    records = envelope(*numbered)
    with IsolatedDecoder(
        schema_of(), crash_marker=b"KILL", input_format=format_of(DOCUMENTED), child_module=CHILD
    ) as decoder:
        found = decoder.decode(payloads, envelope=records)
    assert ends(found) == [0, 1, 2, 3, 4]
    assert (list(found.crashed), list(found.tombstones), list(found.unparseable)) == ([1], [2], [3])
    assert found.rows.column("kafka.key").to_pylist() == ["k0", "k4"]
    assert found.rows.column("kafka.header.h").to_pylist() == ["0", "4"]
    assert found.rows.column("kafka.timestamp").to_pylist() == [0, 4]


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running() as made:
        made.schemas[1] = {"schema": json.dumps(STRINGS)}
        yield made


def test_with_a_registry(registry: SchemaRegistry, request: pytest.FixtureRequest) -> None:
    """In a child that starts as everywhere else, and in one that records kill."""
    good = framed(1, written(STRINGS, {"v": "x"}))
    spec = format_of(avro_by(registry))
    access = Access(address_policy=HERE)
    with IsolatedDecoder(schema_of(), 2**28, input_format=spec, child_module=CHILD, access=access) as decoder:
        registry.stop()
        started = time.monotonic()
        with pytest.raises(RegistryUnreachable, match="does not answer"):
            decoder.decode([good, b"bad"])
        registry.start()
        found = decoder.decode([good, b"bad"])
        assert time.monotonic() - started < 60
    assert found.rows.column("v").to_pylist() == ["x"]
    assert (list(found.crashed), list(found.unparseable)) == ([], [1])
    request.getfixturevalue("warm")
    with IsolatedDecoder(schema_of(), 2**28, b"KILL", input_format=spec, child_module=CHILD, access=access) as decoder:
        found = decoder.decode([good, framed(1, b"\x08KILL"), b"bad"])
    assert found.rows.column("v").to_pylist() == ["x"]
    assert (list(found.crashed), list(found.unparseable)) == ([1], [2])
