"""Stored offsets, with no fault and with every fault: nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, numbered, published, published_rows
from tests.support.waiting import wait_for

RECORDS = 5_000
_HOLDING = "SELECT pid FROM tasks_indexer WHERE task_id = %s AND in_flight > 0"


def test_processes_are_killed(house: House) -> None:
    """Row 1 of the failure matrix, under Spark: a worker dies with rows in hand, then the whole application.

    Before all that nothing fails.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.supervise(house.kafka_spec(topic, taskCount=2))
    published(house, topic, RECORDS)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert totals["polled"] == RECORDS
    assert totals["unparseable"] == totals["thrown_away"] == totals["quarantined"] == 0
    task = house.running_task(topic)
    stream = Endless(house, topic, RECORDS)
    busy = wait_for("rows are in hand", lambda: house.sql(_HOLDING, task), 60, lambda: house.logs(topic))
    for (pid,) in busy:
        os.kill(pid, signal.SIGKILL)
    published(house, topic, published_rows(house, topic) + 5_000)
    assert house.kill_application(task)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    house.ended(task, "FAILED")
