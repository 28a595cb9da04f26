"""Offset ranges that the autoscaler gives more indexers, in a pool that is too small for an overlap, under load."""

from __future__ import annotations

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published
from tests.support.waiting import wait_for

SCALER = {
    "enableTaskAutoScaler": True,
    "taskCountMin": 1,
    "taskCountMax": 3,
    "scaleOutStep": 2,
    "scaleOutThreshold": 50,
    "scaleInThreshold": 0,
    "scaleActionStartDelayMillis": 0,
    "scaleActionPeriodMillis": 1000,
    "minTriggerScaleActionFrequencyMillis": 600_000,
    "lagCollectionIntervalMillis": 5000,
    "lagCollectionRangeMillis": 10_000,
}


@pytest.mark.timeout(900)
def test_the_next_task_has_more_indexers_and_the_last_one_makes_room(house: House) -> None:
    """With three places, one indexer reads and three shall: the first one finishes before they start.

    Under Spark, since an application's places are what is waited for.
    """
    topic = house.topic()
    with house.set_up_with(HEADGATE_WORKER_CAPACITY="3"):
        supervisor = house.supervise(
            house.kafka_spec(topic, autoScalerConfig=SCALER, taskDuration="PT15S", period="PT2S")
        )
        first = house.running_task(topic)
        stream = Endless(house, topic)

        def tasks() -> list[tuple[str, int, str]]:
            return house.sql(
                "SELECT t.id, t.indexers_wanted, t.status FROM tasks_task t JOIN datasources_datasource d"
                " ON d.id = t.datasource_id WHERE d.name = %s ORDER BY t.created_at",
                topic,
            )

        def waits() -> bool:
            return (first, 1, "RUNNING") in tasks() and any(wanted == 3 for _, wanted, _ in tasks())

        wait_for("a task of three indexers waits for a slot", waits, 90, lambda: (tasks(), house.logs(topic)))

        def reading() -> int:
            rows = house.sql(
                "SELECT count(*) FROM tasks_indexer i JOIN tasks_task t ON t.id = i.task_id"
                " JOIN datasources_datasource d ON d.id = t.datasource_id"
                " WHERE d.name = %s AND t.status = 'RUNNING' AND i.state = 'reading'",
                topic,
            )
            return int(rows[0][0])

        wait_for("three indexers read", lambda: reading() == 3, 90, lambda: (tasks(), house.logs(topic)))
        assert house.status(first) == "SUCCESS"
        records = stream.finish()
        published(house, topic, records)
        check_exactly_once(house, topic, range(records))
        found = house.api("GET", f"/api/v1/supervisors/{supervisor}/scale-actions/")["results"]
        assert [(a["before"], a["after"]) for a in found] == [(1, 3)]
