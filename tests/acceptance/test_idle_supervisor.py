"""Supervisors become idle, with applications in Spark: their places are free, and what comes wakes them, once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from controlplane.common.applications import running_applications
from tests.acceptance.test_stop_and_go_on import stopped_as_by_the_launcher, tasks_of
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

LANES = ("offset_range", "share_group")
IDLE = {"enabled": True, "inactiveAfterMillis": 3_000}
DRUID = "/druid/indexer/v1/supervisor"


def state(house: House, supervisor: str) -> str:
    found: dict[str, Any] = house.api("GET", f"{DRUID}/{supervisor}/status")["payload"]
    return str(found["detailedState"])


def rests(house: House, supervisor: str) -> None:
    def asleep() -> bool:
        ended = {status for status, *_ in tasks_of(house, supervisor)}
        return state(house, supervisor) == "IDLE" and ended == {"SUCCESS"}

    wait_for(f"{supervisor} is idle", asleep, 90, lambda: (state(house, supervisor), tasks_of(house, supervisor)))


def running(house: House, supervisors: Iterable[str]) -> list[str]:
    """Ids of their tasks whose applications are there; other tests may have left some of their own."""
    theirs = (
        "SELECT t.id FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id WHERE d.name = ANY(%s)"
    )
    ids = {str(task) for (task,) in house.sql(theirs, list(supervisors))}
    return [task for task, _ in running_applications(house.home.tasks) if task in ids]


@pytest.mark.timeout(600)
def test_it_sleeps_and_wakes_and_each_record_is_there_once(house: House) -> None:
    """What wakes it comes while the stack is stopped.

    Under Spark, since no application is to be left while it sleeps.
    """
    topics = [house.topic(lane.replace("_", "-")) for lane in LANES]
    for lane, topic in zip(LANES, topics, strict=True):
        house.produce(topic, numbered(0, 100))
        house.supervise(lane_spec(house, lane, topic, period="PT1S", idleConfig=IDLE))
    for topic in topics:
        published(house, topic, 100)
        rests(house, topic)
    wait_for("their applications have ended", lambda: not running(house, topics), 30, lambda: running(house, topics))
    with stopped_as_by_the_launcher(house):
        for topic in topics:
            house.produce(topic, numbered(100, 150))
    for topic in topics:
        published(house, topic, 150)
        check_exactly_once(house, topic, range(150))
        assert len(tasks_of(house, topic)) == 2
