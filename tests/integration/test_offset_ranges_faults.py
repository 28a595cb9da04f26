"""Offset ranges under faults, on real services: nothing lost, nothing twice."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.house import House, wait_for
from tests.support.invariants import check_exactly_once
from tests.support.records import Stream, numbered, published
from tests.support.workers import Workers

RECORDS = 5_000
Make = Callable[..., Workers]


def hold(house: House, topic: str, place: str) -> Path:
    """Have the topic's next indexers stop at a place; the file is there when one has."""
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, **{place: f"hold:{held}"})
    return held


@pytest.mark.parametrize("place", ["decoded", "uploaded", "committed"])
def test_an_indexer_is_killed(house: House, make_workers: Make, place: str) -> None:
    """Row 1 of the failure matrix: before the transaction nothing is visible.

    Row 2 of the failure matrix: after it nothing is published again.
    """
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, RECORDS))
    held = hold(house, topic, place)
    workers = make_workers(house.kafka_spec(topic))
    workers.start(0)
    wait_for(f"an indexer stands at {place}", held.exists, 60, lambda: workers.status(0))
    assert bool(house.totals(topic)["published"]) == (place == "committed")
    workers.kill(0)
    house.fail_at(topic)
    workers.start(0)
    published(house, topic, RECORDS)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert totals["polled"] == RECORDS, "what died with its process counts once it is published"


@pytest.mark.parametrize("fault", ["refuse", "lose_answer"])
def test_publishes_fail_for_a_while(house: House, make_workers: Make, fault: str) -> None:
    """Row 3 of the failure matrix: whether it landed or not is found out by its publish id."""
    topic = house.topic()
    workers = make_workers(house.kafka_spec(topic), 2)
    workers.start(0, 1)
    stream = Stream(house, topic, 20_000, per_second=4_000)
    published(house, topic, 500)
    house.proxy.set(fault)
    workers.wait_for_status(0, "an indexer pauses", state="paused")
    wait_for("publishes meet the fault", lambda: house.proxy.hits >= 3, 60)
    house.proxy.set("pass")
    stream.finish()
    published(house, topic, 20_000)
    check_exactly_once(house, topic, range(20_000))


def test_a_task_that_starts_before_its_predecessor_has_ended(house: House, make_workers: Make) -> None:
    """Row 5 of the failure matrix: it waits, and goes on where the other one ended; nothing fails, nothing is reset."""
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.fail_at(topic, uploaded="sleep:4")
    first = make_workers(house.kafka_spec(topic))
    first.start(0)
    first.wait_for_status(0, "the first has records in hand", in_flight=RECORDS)
    house.fail_at(topic)
    second = make_workers(house.kafka_spec(topic), owner=first.owner)
    second.start(0)
    second.wait_for_status(0, "the second waits", state="waiting", message=f"Task {first.id} has not ended yet.")
    first.finish(0)
    first.close()
    house.produce(topic, numbered(RECORDS, 2 * RECORDS))
    published(house, topic, 2 * RECORDS)
    totals = check_exactly_once(house, topic, range(2 * RECORDS))
    assert (totals["polled"], totals["released"]) == (2 * RECORDS, 0)
    assert house.status(first.id) == "SUCCESS"


def test_a_task_that_dies_while_it_finishes(house: House, make_workers: Make) -> None:
    """Row 6 of the failure matrix: it has not succeeded, its segments are nobody's, and the range is read again."""
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    held = hold(house, topic, "uploaded")
    first = make_workers(house.kafka_spec(topic, tuning={"intermediateHandoffPeriod": "PT1H"}))
    first.start(0)
    first.wait_for_status(0, "all is in hand", in_flight=RECORDS)
    house.api("POST", f"/api/v1/tasks/{first.id}/stop/", {"finish": True})
    wait_for("it publishes what it holds", held.exists, 60, lambda: first.status(0))
    first.give_way()
    wait_for("the task has failed", lambda: house.status(first.id) == "FAILED", 60)
    assert house.totals(topic)["published"] == 0
    house.fail_at(topic)
    second = make_workers(house.kafka_spec(topic), owner=first.owner)
    second.start(0)
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))


def test_a_full_disk(house: House, make_workers: Make) -> None:
    """Row 26 of the failure matrix: it pauses, publishes nothing half, and goes on when there is room."""
    topic = house.topic()
    plain = {"longEncoding": "longs", "dimensionCompression": "uncompressed", "metricCompression": "uncompressed"}
    workers = make_workers(house.kafka_spec(topic, tuning={"indexSpec": plain}))
    workers.start(0)
    workers.wait_for_status(0, "it reads", state="reading")
    process = psutil.Process(workers.pid(0))
    before = process.rlimit(resource.RLIMIT_FSIZE)
    process.rlimit(resource.RLIMIT_FSIZE, (4_000, before[1]))
    house.produce(topic, numbered(0, RECORDS))
    workers.wait_for_status(0, "an indexer pauses", state="paused")
    assert house.totals(topic)["published"] == 0
    process.rlimit(resource.RLIMIT_FSIZE, before)
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))
