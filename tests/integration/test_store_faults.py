"""What the indexers depend on goes away and comes back, while records come in."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.support.house import House, wait_for
from tests.support.invariants import check_exactly_once
from tests.support.records import Stream, published
from tests.support.registry import framed, running
from tests.support.workers import Workers

Make = Callable[..., Workers]
LANES = ["offset_range", "consumer_group"]
RECORDS = 30_000


def run_lanes(house: House, make_workers: Make) -> tuple[str, dict[str, str]]:
    """One topic that is read in both ways: the topic and the datasources."""
    topic = house.topic()
    names = {lane: f"{topic}-{lane}" for lane in LANES}
    for lane, name in names.items():
        make_workers(house.kafka_spec(topic, datasource=name, assignment=lane), 2).start(0, 1)
    return topic, names


def goes_on(house: House, names: dict[str, str]) -> None:
    """Wait until something more is published of each."""
    count = (
        "SELECT coalesce(sum(published), 0) FROM segments_writer w"
        " JOIN datasources_datasource d ON d.id = w.datasource_id WHERE d.name = %s"
    )
    before = {name: house.sql(count, name) for name in names.values()}
    for name in before:
        wait_for(f"{name} goes on", lambda name=name: house.sql(count, name) > before[name], 60)


@pytest.mark.timeout(400)
def test_kafka_stops_and_starts(house: House, make_workers: Make) -> None:
    """Row 14 of the failure matrix: a broker that is stopped for longer than any session, then killed and restarted."""
    topic, names = run_lanes(house, make_workers)
    stream = Stream(house, topic, RECORDS, per_second=1_500)
    for name in names.values():
        published(house, name, 1_000)
    house.kafka.pause()
    began = time.monotonic()
    wait_for("longer than a session", lambda: time.monotonic() - began > 12, 30)
    house.kafka.resume()
    goes_on(house, names)
    house.kafka.kill()
    house.kafka.restart()
    stream.finish()
    for name in names.values():
        published(house, name, RECORDS)
        check_exactly_once(house, name, range(RECORDS))


@pytest.mark.timeout(400)
def test_postgresql_stops_at_once_and_starts(house: House, make_workers: Make) -> None:
    """Row 8 of the failure matrix: an immediate stop under publishes, twice; nothing half, nothing twice."""
    topic, names = run_lanes(house, make_workers)
    stream = Stream(house, topic, RECORDS, per_second=1_500)
    for name in names.values():
        published(house, name, 1_000)
    for _ in range(2):
        os.kill(house.postgres.pid, signal.SIGQUIT)
        wait_for("it has stopped", lambda: not house.postgres.running, 30)
        house.postgres.restart()
        goes_on(house, names)
    stream.finish()
    for name in names.values():
        published(house, name, RECORDS)
        check_exactly_once(house, name, range(RECORDS))


def avro_long(number: int) -> bytes:
    """As Avro writes a long that is not negative."""
    number, out = number << 1, b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def test_the_schema_registry_is_away(house: House, make_workers: Make) -> None:
    """Row 20 of the failure matrix: it pauses, marks nothing as unparseable, and goes on when the registry answers."""
    fields = [{"name": "time", "type": "string"}, {"name": "n", "type": "long"}, {"name": "value", "type": "long"}]
    topic = house.topic()
    records = (framed(1, avro_long(10) + b"2025-06-01" + avro_long(n) + avro_long(3 * n)) for n in range(500))
    house.produce(topic, records)
    with running() as registry:
        registry.schemas[1] = {"schema": json.dumps({"type": "record", "name": "R", "fields": fields})}
        registry.status = 500
        decoder = {"type": "schema_registry", "url": registry.url}
        spec = house.kafka_spec(topic, inputFormat={"type": "avro_stream", "avroBytesDecoder": decoder})
        workers = make_workers(spec)
        workers.start(0)
        workers.wait_for_status(0, "it pauses", state="paused")
        wait_for("it has asked more than once", lambda: len(registry.asked) > 3, 30)
        registry.status = 200
        published(house, topic, 500)
    totals = check_exactly_once(house, topic, range(500))
    assert (totals["unparseable"], totals["released"]) == (0, 0)
