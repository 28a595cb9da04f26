"""Several topics in one application, under Spark and Kafka.

Only there it shows that the indexers of many tasks read, fail and end side by side in one process of Spark's, and that
nothing is lost or stored twice when that process, or all of the application, is killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

BATCH = 100
STEM = "small"
_READING = (
    "SELECT s.id, t.id FROM tasks_task t JOIN supervisors_supervisor s ON s.id = t.supervisor_id"
    " JOIN tasks_indexer i ON i.task_id = t.id JOIN supervisors_supervisor p ON p.id = s.parent_id"
    " WHERE p.id = %s AND t.status = 'RUNNING' AND t.goal = 'continue' AND i.state = 'reading'"
)


class Topics:
    """Topics whose records are numbered throughout: all go into one datasource, which is called as they begin."""

    def __init__(self, house: House, number: int, stem: str = STEM) -> None:
        self.house = house
        self.stem = stem
        self.names = [house.topic(f"{stem}-{n}") for n in range(number)]
        self.produced = 0

    def produce(self, count: int = BATCH, topics: list[str] | None = None) -> None:
        for topic in topics or self.names:
            self.house.produce(topic, numbered(self.produced, self.produced + count))
            self.produced += count

    def tasks(self, supervisor: str) -> dict[str, str]:
        """Topic → the task that reads it, once all are read."""

        def reading() -> dict[str, str] | None:
            found = {child.partition(":")[2]: task for child, task in self.house.sql(_READING, supervisor)}
            return found if set(found) == set(self.names) else None

        return wait_for("every topic is read", reading, 180, lambda: self.house.logs(self.stem))

    def stored(self) -> None:
        published(self.house, self.stem, self.produced, 180)


def pids(house: House, tasks: dict[str, str]) -> dict[str, int | None]:
    return {topic: house.application_pid(task) for topic, task in tasks.items()}


def log_of(house: House, task: str) -> Path:
    return house.home.tasks / task / "spark.log"


@pytest.mark.timeout(900)
def test_tasks_share_an_application_and_nothing_is_lost_or_twice(house: House) -> None:
    """Those of two supervisors: of offset ranges, and of share groups, whose records Kafka delivers again."""
    topics, lent = Topics(house, 4), Topics(house, 2, "lent")
    first, second, third, fourth = topics.names
    house.fail_at(STEM, crash_marker="KILLER")

    def produce() -> None:
        topics.produce()
        lent.produce()

    def stored() -> None:
        topics.stored()
        lent.stored()

    produce()
    house.produce(second, [b"{broken"] * 3)  # its neighbours do not notice
    supervisor = house.supervise(pattern_spec(house.kafka_spec(first, STEM), STEM))
    lender = house.supervise(pattern_spec(house.spec(lent.names[0], "lent"), "lent"))

    def reading() -> dict[str, str]:
        return {**topics.tasks(supervisor), **lent.tasks(lender)}

    tasks = reading()
    stored()
    [application] = set(pids(house, tasks).values())
    assert application is not None
    [worker] = workers(house, tasks)
    assert len({log_of(house, task).stat().st_ino for task in tasks.values()}) == 1

    # One task is killed: the others go on.
    house.api("POST", f"/druid/indexer/v1/task/{tasks[third]}/shutdown")
    house.ended(tasks[third])
    after = reading()
    produce()
    stored()
    assert {topic for topic in after if after[topic] != tasks[topic]} == {third}
    assert set(pids(house, after).values()) == {application}

    # A record kills the process of all indexers: each starts again, for the same task, and takes what it had in hand
    # for suspect until that record is found.
    produce()
    house.produce(first, [b'{"time": "2025-06-01T00:00:00Z", "n": -1, "category": "KILLER"}'])
    produce()
    stored()
    wait_for("the record is quarantined", lambda: house.totals(STEM)["unparseable"] == 4, 180)
    assert reading() == after
    assert workers(house, after) != {worker}

    # The application dies: all its tasks fail, and the next ones share another.
    produce()
    house.kill_application(after[first])
    produce()
    stored()
    renewed = reading()
    assert not set(renewed.values()) & set(after.values())
    [other] = set(pids(house, renewed).values())
    assert other not in (None, application)
    assert house.status(after[first]) == "FAILED"

    # One topic grows: it gets an application of its own, its neighbours stay.
    topics.produce(20_000, [fourth])
    stored()

    def moved_out() -> dict[str, str] | None:
        found = reading()
        return found if house.application_pid(found[fourth]) not in (other, None) else None

    moved = wait_for("the topic that grew has its own application", moved_out, 120, lambda: house.logs(STEM))
    assert {topic: task for topic, task in moved.items() if topic != fourth} == {
        topic: task for topic, task in renewed.items() if topic != fourth
    }
    assert house.application_pid(moved[first]) == other
    produce()
    stored()

    house.rest()
    assert check_exactly_once(house, STEM, range(topics.produced))["unparseable"] == 4
    check_exactly_once(house, "lent", range(lent.produced))
    assert other is not None and psutil.pid_exists(other)  # it waits a minute for more


def workers(house: House, tasks: dict[str, str]) -> set[int]:
    """The processes of their indexers."""
    return {pid for task in tasks.values() for pid in house.indexer_pids(task).values()}


def pattern_spec(spec: dict[str, Any], stem: str) -> dict[str, Any]:
    """Of all topics that are called so, but for the number."""
    del spec["ioConfig"]["topic"]
    spec["ioConfig"] |= {"topicPattern": f"{stem}-.*", "smallTopicRate": 20, "period": "PT2S"}
    return spec
