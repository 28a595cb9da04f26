"""What a supervisor shows of its trouble, and of what is none."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

POISONED = 80
POISON = b"{broken" + bytes(900_000)


def status(house: House, supervisor: str) -> dict[str, Any]:
    found: dict[str, Any] = house.api("GET", f"/druid/indexer/v1/supervisor/{supervisor}/status")["payload"]
    return found


@pytest.mark.timeout(900)
def test_many_poison_records_that_are_large(house: House) -> None:
    """Row 19 of the failure matrix: poison records near the size that a topic takes, in number, are no trouble.

    Under Spark, as many an error would fail its application.
    """
    topic = house.topic(partitions=1)
    house.produce(topic, [*numbered(0, 2000), *([POISON] * POISONED)])
    supervisor = house.supervise(house.kafka_spec(topic, taskCount=3, period="PT2S"))
    published(house, topic, 2000)
    task = house.running_task(topic)
    indexers = house.sql("SELECT number FROM tasks_indexer WHERE task_id = %s", task)
    assert indexers == [(0,)], "of three indexers two would have no partition to read"
    wait_for("all of it is counted", lambda: house.totals(topic)["unparseable"] == POISONED, 60)
    wait_for("it is seen to run", lambda: status(house, supervisor)["state"] == "RUNNING", 60)
    seen = status(house, supervisor)
    assert (seen["healthy"], seen["recentErrors"]) == (True, [])
    check_exactly_once(house, topic, range(2000))


def test_a_task_that_does_not_end_when_it_is_told_to(house: House) -> None:
    """Row 6 of the failure matrix: after its completionTimeout it is killed, and its range is read again.

    Under Spark, which does not stop a Python process that never yields.
    """
    topic = house.topic(partitions=1)
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, uploaded=f"hold:{held}")
    house.produce(topic, numbered(0, 2000))
    supervisor = house.supervise(house.kafka_spec(topic, completionTimeout="PT3S"))
    wait_for("an indexer publishes", held.exists, 90, lambda: house.logs(topic))
    [(task,)] = house.sql("SELECT id FROM tasks_task WHERE supervisor_id = %s", supervisor)
    house.fail_at(topic)
    # By then Spark's own status, which lags by up to 10 s, once said that the indexer had no slot: it was cancelled.
    began = "SELECT 1 FROM tasks_task WHERE id = %s AND started_at < now() - interval '7 s'"
    wait_for("it has run for a while", lambda: house.sql(began, task), 30)
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/suspend")
    house.ended(task, "FAILED")
    [(error,)] = house.sql("SELECT error FROM tasks_task WHERE id = %s", task)
    assert "did not end after the stop" in error
    indexer = int(held.read_text())
    gone = "neither application nor indexer is left"
    wait_for(gone, lambda: house.application_pid(task) is None and not psutil.pid_exists(indexer), 20)
    assert house.totals(topic)["published"] == 0
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/resume")
    published(house, topic, 2000)
    check_exactly_once(house, topic, range(2000))
