"""A share group whose lag sets the number of its indexers, under load: nothing lost, nothing doubled, no other task."""

from __future__ import annotations

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Stream, published
from tests.support.waiting import wait_for


@pytest.mark.timeout(900)
def test_indexers_come_with_the_load_and_go_with_it(house: House) -> None:
    """Under Spark, whose driver starts and ends indexers in one application."""
    topic = house.topic()
    scaler = {
        "enableTaskAutoScaler": True,
        "taskCountMin": 1,
        "taskCountMax": 3,
        "scaleOutStep": 2,
        "scaleInStep": 2,
        "scaleOutThreshold": 200,
        "scaleInThreshold": 10,
        "scaleActionStartDelayMillis": 0,
        "scaleActionPeriodMillis": 1000,
        "minTriggerScaleActionFrequencyMillis": 5000,
        "lagCollectionIntervalMillis": 5000,
        "lagCollectionRangeMillis": 10_000,
    }
    house.fail_at(topic, decoded="sleep:0.3")  # a batch takes so long at least: however fast the machine is, it lags
    supervisor = house.supervise(house.spec(topic, autoScalerConfig=scaler, consumersPerIndexer=1))
    task = house.running_task(topic)
    records = 100_000
    stream = Stream(house, topic, records, per_second=5_000)

    def reading() -> int:
        rows = house.sql("SELECT count(*) FROM tasks_indexer WHERE task_id = %s AND state = 'reading'", task)
        return int(rows[0][0])

    def actions() -> list[tuple[int, int]]:
        found = house.api("GET", f"/api/v1/supervisors/{supervisor}/scale-actions/")["results"]
        return [(a["before"], a["after"]) for a in reversed(found)]

    wait_for("three indexers read", lambda: reading() == 3, 90, lambda: (actions(), house.logs(topic)))
    stream.finish()
    published(house, topic, records)
    wait_for("one indexer is left", lambda: reading() == 1 and actions()[-1] == (3, 1), 90, actions)
    assert actions()[0] == (1, 3)
    check_exactly_once(house, topic, range(records))
    assert house.running_task(topic) == task, "the application was replaced"
    series = house.api("GET", f"/api/v1/supervisors/{supervisor}/lag/series/")["points"]
    assert max(p["lag"] for p in series) >= 200
    assert any(p["processed_per_s"] for p in series)
    now = house.api("GET", f"/api/v1/supervisors/{supervisor}/lag/")
    assert (now["lag"], now["problem"], len(now["partitions"])) == (0, "", 4)
