"""Consumer groups: members come, go, sleep and die; each record is stored once."""

from __future__ import annotations

from tests.support.house import House, wait_for
from tests.support.invariants import check_exactly_once
from tests.support.records import Stream, numbered, published

RECORDS = 50_000


def test_no_fault(house: House) -> None:
    topic = house.topic()
    house.produce(topic, numbered(0, RECORDS))
    house.supervise(house.kafka_spec(topic, taskCount=2, assignment="consumer_group"))
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))


def test_indexers_are_added_and_removed(house: House) -> None:
    """Row 22 of the failure matrix, under Spark: from one indexer to three and back, in one task."""
    topic = house.topic()
    supervisor = house.supervise(house.kafka_spec(topic, taskCount=1, assignment="consumer_group"))
    task = house.running_task(topic)
    stream = Stream(house, topic, RECORDS, per_second=2_500)
    for wanted in (3, 1, 2):
        house.api("POST", f"/api/v1/supervisors/{supervisor}/scale/", {"taskCount": wanted})
        wait_for(
            f"{wanted} indexers read",
            lambda wanted=wanted: (
                house.sql("SELECT count(*) FROM tasks_indexer WHERE task_id = %s AND state = 'reading'", task)
                == [(wanted,)]
            ),
            60,
            lambda: house.logs(topic),
        )
    stream.finish()
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))
    assert house.running_task(topic) == task, "the application was replaced"
