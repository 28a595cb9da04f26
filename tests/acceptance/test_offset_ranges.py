"""Stored offsets, with no fault and with every fault: nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal

from tests.support.house import House, wait_for
from tests.support.invariants import check_exactly_once
from tests.support.records import Stream, numbered, published

RECORDS = 50_000


def test_no_fault(house: House) -> None:
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.supervise(house.kafka_spec(topic, taskCount=2))
    published(house, topic, RECORDS)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert totals["polled"] == RECORDS
    assert totals["unparseable"] == totals["thrown_away"] == totals["quarantined"] == 0


def test_processes_are_killed(house: House) -> None:
    """Row 1 of the failure matrix, under Spark: a worker dies with rows in hand, then the whole application."""
    topic = house.topic()
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, uploaded=f"hold_once:{held}")
    house.supervise(house.kafka_spec(topic, taskCount=2))
    task = house.running_task(topic)
    stream = Stream(house, topic, RECORDS)
    wait_for("an indexer has uploaded", held.exists, 60, lambda: house.logs(topic))
    busy = wait_for(
        "a heartbeat with the records in flight",
        lambda: house.sql("SELECT pid FROM tasks_indexer WHERE task_id = %s AND in_flight > 0", task),
        30,
    )
    for (pid,) in busy:
        os.kill(pid, signal.SIGKILL)
    published(house, topic, RECORDS // 10)
    assert house.kill_application(task)
    stream.finish()
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))
    house.ended(task, "FAILED")
