"""Bounded reads on real services, with kills: each offset of the ranges once, beside other readers of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from tests.support.house import House
from tests.support.invariants import check_exactly_once, stored_numbers
from tests.support.lanes import LANES, lane_spec
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS = 4_000
Make = Callable[..., Workers]


def test_an_indexer_is_killed(house: House, make_workers: Make) -> None:
    """At each place, and with each source: the next one continues, and ends by itself when nothing is left."""
    topic = house.topic(partitions=1)
    house.produce(topic, numbered(0, RECORDS))
    half = [(0, 0, RECORDS // 2)]
    reads: dict[str, Workers] = {}
    for lane, place in zip(LANES, ("decoded", "uploaded", "committed"), strict=True):
        name = f"{topic}-{lane}"
        held = house.home.path / f"{name}.held"
        house.fail_at(name, **{place: f"hold:{held}"})
        reads[name] = make_workers(lane_spec(house, lane, topic, name), ranges=half)
        reads[name].start(0)
        wait_for(f"{name}: an indexer stands there", held.exists, 60, lambda name=name: reads[name].status(0))
        reads[name].kill(0)
        house.fail_at(name)
        reads[name].start(0)
    for name, workers in reads.items():
        assert workers.ended(0) == ("ended", "")
        workers.close()
        assert house.status(workers.id) == "SUCCESS"
        progress = house.api("GET", f"/api/v1/tasks/{workers.id}/")["progress"]
        expected = {"total": RECORDS // 2, "done": RECORDS // 2, "percent": 100, "seconds_left": 0}
        assert progress == expected
        assert_stored(house, name, RECORDS // 2)


def assert_stored(house: House, datasource: str, records: int) -> None:
    totals = house.totals(datasource)
    assert (totals["published"], totals["polled"], totals["adds_up"]) == (records, records, True)


def test_a_read_beside_the_reader_of_its_source(house: House, make_workers: Make) -> None:
    """It settles what the other one has not reached, in two reads that overlap: the other passes over that."""
    topic = house.topic(partitions=1)
    house.produce(topic, numbered(0, RECORDS))
    names: dict[str, dict[str, Any]] = {
        f"{topic}-{lane}": lane_spec(house, lane, topic, f"{topic}-{lane}") for lane in LANES
    }
    for name, spec in names.items():
        first = make_workers(spec, owner=f"{name}-owner", ranges=[(0, 1_000, 2_000)])
        second = make_workers(spec, owner=f"{name}-owner", ranges=[(0, 1_500, 3_000)])
        first.start(0)
        second.start(0)
        reader = make_workers(spec, owner=f"{name}-owner")
        reader.start(0)
        assert {first.ended(0), second.ended(0)} == {("ended", "")}
        published(house, name, RECORDS)
        reader.finish(0)
        check_exactly_once(house, name, range(RECORDS))


def test_a_task_that_is_stopped_says_what_is_left(house: House, make_workers: Make) -> None:
    topic = house.topic(partitions=1)
    house.produce(topic, numbered(0, RECORDS))
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, uploaded=f"hold:{held}")
    workers = make_workers(house.kafka_spec(topic), owner=None, ranges=[(0, 0, RECORDS)])
    workers.start(0)
    wait_for("an indexer stands there", held.exists, 60, lambda: workers.status(0))
    house.api("POST", f"/api/v1/tasks/{workers.id}/stop/", {})
    workers.close()
    task = house.api("GET", f"/api/v1/tasks/{workers.id}/")
    assert (task["status"], task["progress"]["done"]) == ("FAILED", 0)
    assert f"{RECORDS:,} offsets are left. Submit it again" in task["error"]


def test_druids_task_ends_by_itself(house: House) -> None:
    """Through Spark: that its driver ends when all indexers have read their part, nothing cheaper shows.

    One indexer of three has nothing to read, and the end is that of an aborted transaction.
    """
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, 100), partition=0)
    aborted = Producer({"bootstrap.servers": house.bootstrap, "transactional.id": topic})
    aborted.init_transactions()
    aborted.begin_transaction()
    for payload in numbered(100, 150):
        aborted.produce(topic, payload, partition=1)
    assert aborted.flush(60) == 0
    aborted.abort_transaction()
    spec = house.kafka_spec(topic, taskCount=3)
    del spec["ioConfig"]["startDelay"]
    for side, offsets in (("start", {"0": 20, "1": 0}), ("end", {"0": 60, "1": 51})):
        bounds = {"type": side, "stream": topic, "partitionSequenceNumberMap": offsets}
        spec["ioConfig"][f"{side}SequenceNumbers"] = bounds
    task = house.submit({**spec, "type": "index_kafka"})
    house.ended(task)
    check_exactly_once_within(house, topic, range(20, 60))
    report = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")["headgate"]["payload"]["progress"]
    assert report == {"total": 91, "done": 91, "percent": 100, "secondsLeft": 0}
    states = {state for (state,) in house.sql("SELECT state FROM tasks_indexer WHERE task_id = %s", task)}
    assert "restarting" not in states, "what has read its part does not begin again"


def check_exactly_once_within(house: House, datasource: str, numbers: range) -> None:
    """These are stored, each once; what else the topic has is nobody's."""
    assert stored_numbers(house, datasource)[0] == Counter(numbers)
    assert_stored(house, datasource, len(numbers))
