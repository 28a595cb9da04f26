"""Consumer groups under Spark: members come, go and die; each record is stored once."""

from __future__ import annotations

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, numbered, published
from tests.support.waiting import wait_for

RECORDS = 50_000
_READING = "SELECT count(*) FROM tasks_indexer WHERE task_id = %s AND state = 'reading'"
_HOLDING = "SELECT 1 FROM tasks_indexer WHERE task_id = %s AND in_flight > 0"


@pytest.mark.timeout(900)
def test_indexers_are_added_and_removed_and_killed(house: House) -> None:
    """Row 22 of the failure matrix, under Spark: from two indexers to three, one and two, in one task.

    Row 1 of the failure matrix: then the application is killed with rows in hand. Before all that nothing fails.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    supervisor = house.supervise(house.kafka_spec(topic, taskCount=2, assignment="consumer_group"))
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))
    task = house.running_task(topic)
    stream = Endless(house, topic, RECORDS)
    for wanted in (3, 1, 2):
        house.api("POST", f"/api/v1/supervisors/{supervisor}/scale/", {"taskCount": wanted})
        wait_for(
            f"{wanted} indexers read",
            lambda wanted=wanted: house.sql(_READING, task) == [(wanted,)],
            60,
            lambda: house.logs(topic),
        )
    assert house.running_task(topic) == task, "the application was replaced"
    wait_for("rows are in hand", lambda: house.sql(_HOLDING, task), 60)
    assert house.kill_application(task)
    wait_for("the next application reads", lambda: house.running_task(topic) != task, 90)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    house.ended(task, "FAILED")
