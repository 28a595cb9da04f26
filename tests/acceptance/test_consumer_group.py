"""Consumer groups under Spark: members come, go and die; each record is stored once."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, numbered, published
from tests.support.waiting import wait_for

RECORDS = 5_000
_READING = "SELECT count(*) FROM tasks_indexer WHERE task_id = %s AND state = 'reading'"
_HOLDING = "SELECT 1 FROM tasks_indexer WHERE task_id = %s AND in_flight > 0"


@pytest.mark.timeout(900)
def test_indexers_are_added_and_removed_and_killed(house: House) -> None:
    """Row 22 of the failure matrix, under Spark: from two indexers to three, one and two, in one task.

    Row 1 of the failure matrix: then the application is killed with rows in hand. Before all that nothing fails.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    supervisor = house.supervise(house.kafka_spec(topic, taskCount=2, assignment="consumer_group", period="PT2S"))
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
    _others_are_named(house, topic)


def _others_are_named(house: House, supervisor: str) -> None:
    """Whoever else takes partitions in the group, for as long as that is so."""
    dealt = {"partition.assignment.strategy": "cooperative-sticky", "auto.offset.reset": "latest"}
    stranger = Consumer(
        {"bootstrap.servers": house.bootstrap, "group.id": supervisor, "client.id": "a-console", **dealt}
    )

    def told(poll: bool = False) -> tuple[str, bool, str]:
        if poll:
            stranger.poll(0.2)
        seen = house.api("GET", f"/api/v1/supervisors/{supervisor}/")
        return seen["detailed_state"], seen["healthy"], seen["health"]["text"]

    try:
        stranger.subscribe([supervisor])
        wait_for("the other is named", lambda: told(poll=True)[:2] == ("STRANGERS_IN_GROUP", False), 60, told)
        assert "in the consumer group: a-console at 127.0.0.1" in told()[2]
    finally:
        stranger.close()
    wait_for("it is well without", lambda: told()[:2] == ("RUNNING", True), 60, told)
