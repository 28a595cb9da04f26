"""Stored offsets under faults, on real services: nothing lost, nothing twice."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import WITH_STORED_OFFSETS, lane_spec
from tests.support.records import Endless, numbered, published, published_rows
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS = 5_000
VICTIMS = [
    ("offset_range", "decoded"),
    ("offset_range", "uploaded"),
    ("offset_range", "committed"),
    ("consumer_group", "uploaded"),
    ("consumer_group", "committed"),
]
Make = Callable[..., Workers]


def hold(house: House, topic: str, place: str) -> Path:
    """Have the topic's next indexers stop at a place; the file is there when one has."""
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, **{place: f"hold:{held}"})
    return held


def test_an_indexer_is_killed(house: House, make_workers: Make) -> None:
    """Row 1 of the failure matrix: before the transaction nothing is visible; its files are orphans, and cleaned up.

    Row 2 of the failure matrix: after it nothing is published again. At each place, in both lanes, all side by side.
    """
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, RECORDS))
    victims: dict[str, tuple[str, Path, Workers]] = {}
    for lane, place in VICTIMS:
        name = f"{topic}-{lane}-{place}"
        held = hold(house, name, place)
        victims[name] = (place, held, make_workers(lane_spec(house, lane, topic, name)))
        victims[name][2].start(0)
    orphans: set[Path] = set()
    for name, (place, held, workers) in victims.items():
        wait_for(f"{name}: an indexer stands there", held.exists, 60, lambda workers=workers: workers.status(0))
        assert bool(house.totals(name)["published"]) == (place == "committed")
        workers.kill(0)
        if place == "uploaded":
            orphans |= files_of(house, name)
        house.fail_at(name)
        workers.start(0)
    assert orphans
    for name, (_, _, workers) in victims.items():
        published(house, name, RECORDS)
        workers.finish(0)
        totals = check_exactly_once(house, name, range(RECORDS))
        assert totals["polled"] == RECORDS, "what died with its process counts once it is published"
    before = files_of(house, *victims)
    house.manage("cleanup_orphans", "--older-than", "PT0S")
    assert before - files_of(house, *victims) == orphans


def files_of(house: House, *datasources: str) -> set[Path]:
    """What the deep storage holds of these."""
    return {file for name in datasources for file in (house.home.segments / name).rglob("*") if file.is_file()}


def test_publishes_fail_for_a_while(house: House, make_workers: Make) -> None:
    """Row 3 of the failure matrix: whether it landed or not is found out by its publish id, in both lanes.

    Publishes are refused; then, when all go on, their answers are lost.
    """
    topic = house.topic()
    lanes = {
        name: make_workers(lane_spec(house, lane, topic, name), 2)
        for lane in WITH_STORED_OFFSETS
        for name in (f"{topic}-{lane}",)
    }
    for workers in lanes.values():
        workers.start(0, 1)
    stream = Endless(house, topic)
    for fault in ("refuse", "lose_answer"):
        for name in lanes:
            published(house, name, published_rows(house, name) + 500)
        house.proxy.set(fault)
        for name, workers in lanes.items():
            workers.wait_for_status(0, f"{name}: an indexer pauses", state="paused")
        wait_for("publishes meet the fault", lambda: house.proxy.hits >= 6, 60)
        house.proxy.set("pass")
        for name, workers in lanes.items():
            workers.wait_for_status(0, f"{name}: it reads again", state="reading")
    records = stream.finish()
    for name in lanes:
        published(house, name, records)
        check_exactly_once(house, name, range(records))


def test_a_task_that_starts_before_its_predecessor_has_ended(house: House, make_workers: Make) -> None:
    """Row 5 of the failure matrix: it waits, and goes on where the other one ended; nothing fails, nothing is reset."""
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.fail_at(topic, uploaded="sleep:4")
    first = make_workers(house.kafka_spec(topic, tuning={"intermediateHandoffPeriod": "PT1H"}))
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
    house.ended(first.id, "FAILED")
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
