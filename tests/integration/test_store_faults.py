"""What the indexers depend on goes away and comes back, while records come in."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from ingestion.specs.messages.protocol import Leases
from tests.support.browsing import browsing
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import LANES, lane_spec
from tests.support.records import Endless, published
from tests.support.registry import framed, running
from tests.support.storms import published_rows
from tests.support.waiting import wait_for
from tests.support.workers import Workers

Make = Callable[..., Workers]


def run_lanes(house: House, make_workers: Make) -> tuple[str, dict[str, str]]:
    """One topic that is read in all ways: the topic and the datasources."""
    topic = house.topic()
    names = {lane: f"{topic}-{lane}" for lane in LANES}
    for lane, name in names.items():
        make_workers(lane_spec(house, lane, topic, name), 2).start(0, 1)
    return topic, names


def goes_on(house: House, names: dict[str, str]) -> None:
    """Wait until something more is published of each."""
    before = {name: published_rows(house, name) for name in names.values()}
    for name in before:
        wait_for(f"{name} goes on", lambda name=name: published_rows(house, name) > before[name], 60)


def all_is_well(house: House, names: dict[str, str], stream: Endless) -> None:
    """No more records come, and of each lane all are published, once."""
    records = stream.finish()
    for name in names.values():
        published(house, name, records)
        check_exactly_once(house, name, range(records))


@pytest.mark.timeout(900)
def test_kafka_stops_and_starts(house: House, make_workers: Make) -> None:
    """Row 14 of the failure matrix: a broker that is stopped for longer than any session and any lock, then killed
    and restarted; records come and are in hand all the while.
    """
    topic, names = run_lanes(house, make_workers)
    stream = Endless(house, topic)
    for name in names.values():
        published(house, name, 1_000)
    house.kafka.pause()
    began = time.monotonic()
    wait_for("longer than a session", lambda: time.monotonic() - began > 12, 30)
    house.kafka.resume()
    goes_on(house, names)
    house.kafka.kill()
    house.kafka.restart()
    goes_on(house, names)
    all_is_well(house, names, stream)


@pytest.mark.timeout(900)
def test_postgresql_stops_at_once_and_starts(house: House, make_workers: Make) -> None:
    """Row 8 of the failure matrix: an immediate stop under publishes, twice; nothing half, nothing twice."""
    topic, names = run_lanes(house, make_workers)
    stream = Endless(house, topic)
    for name in names.values():
        published(house, name, 1_000)
    for _ in range(2):
        os.kill(house.postgres.pid, signal.SIGQUIT)
        wait_for("it has stopped", lambda: not house.postgres.running, 30)
        house.postgres.restart()
        goes_on(house, names)
    all_is_well(house, names, stream)


def avro_long(number: int) -> bytes:
    """A long that is not negative, in Avro's form."""
    number, out = number << 1, b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def test_the_schema_registry_is_away(house: House, make_workers: Make) -> None:
    """Row 20 of the failure matrix: it pauses, marks nothing as unparseable, and goes on when the registry answers.

    A share group's records are neither rejected nor given back: each is delivered once.
    """
    fields = [{"name": "time", "type": "string"}, {"name": "n", "type": "long"}, {"name": "value", "type": "long"}]
    topic = house.topic()
    records = (framed(1, avro_long(10) + b"2025-06-01" + avro_long(n) + avro_long(3 * n)) for n in range(500))
    house.produce(topic, records)
    with running() as registry:
        registry.schemas[1] = {"schema": json.dumps({"type": "record", "name": "R", "fields": fields})}
        registry.status = 500
        lanes = {}
        for lane in ("offset_range", "share_group"):
            name = f"{topic}-{lane}"
            decoder = {"type": "schema_registry", "url": registry.url}
            given = {"type": "avro_stream", "avroBytesDecoder": decoder}
            more: dict[str, Any] = {"lock_ms": 60_000} if lane == "share_group" else {}
            lanes[name] = make_workers(lane_spec(house, lane, topic, name, inputFormat=given, **more))
            lanes[name].start(0)
            lanes[name].wait_for_status(0, "it pauses", state="paused")
        before = len(registry.asked)
        wait_for("they ask again and again", lambda: len(registry.asked) > before + 6, 30)
        registry.status = 200
        for name in lanes:
            published(house, name, 500)
    for name in lanes:
        totals = check_exactly_once(house, name, range(500))
        assert (totals["unparseable"], totals["released"], totals["redelivered"]) == (0, 0, 0)
    group = lanes[f"{topic}-share_group"]

    def settled() -> Leases | None:
        status = group.status(0)
        return status.leases if status and status.leases.accepted == 500 else None

    leases = wait_for("all is accepted", settled, 30)
    assert (leases.acquired, leases.rejected, leases.released, leases.lock_expired) == (500, 0, 0, 0)


@pytest.mark.timeout(900)
def test_valkey_loses_everything(house: House, make_workers: Make) -> None:
    """Row 42 of the failure matrix: all keys go under ingestion, again and again; then it dies and comes back empty.

    Whoever is logged in stays so, and what is submitted in that moment is done all the same.
    """
    topic, names = run_lanes(house, make_workers)
    stream = Endless(house, topic)
    with browsing(house) as client, redis.Redis.from_url(house.valkey.url) as valkey:
        for _ in range(3):
            valkey.flushall()
            goes_on(house, names)
        is_run(house, lane_spec(house, "offset_range", topic), lambda: valkey.flushall())
        house.valkey.kill()
        goes_on(house, names)
        shutil.rmtree(house.home.path / house.valkey.name / "data")
        house.valkey.restart()
        assert valkey.dbsize() < 50, "what it had before is gone"
        page = client.get("/")
        assert page.status_code == 200 and page.url.path == "/", "a login does not end by this"
        is_run(house, lane_spec(house, "offset_range", topic), lambda: True)
    goes_on(house, names)
    all_is_well(house, names, stream)


def is_run(house: House, spec: dict[str, Any], then: Callable[[], Any]) -> None:
    """Submit a supervisor, do ``then``, which may lose the message of its first run, and wait for its task."""
    supervisor = house.supervise(spec)
    then()
    ran = "SELECT 1 FROM tasks_task WHERE supervisor_id = %s"
    wait_for("the supervisor has run", lambda: house.sql(ran, supervisor), 60)
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
