"""Several topics in one application, under Spark and Kafka.

Only there it shows that the indexers of many tasks read, fail and end side by side in one process of Spark's, and that
nothing is lost or stored twice when that process, or all of the application, is killed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

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


def test_topics_share_an_application_and_nothing_is_lost_or_twice(house: House) -> None:
    topics = Topics(house, 4)
    first, second, third, fourth = topics.names
    topics.produce()
    house.produce(second, [b"{broken"] * 3)  # its neighbours do not notice
    supervisor = house.supervise(pattern_spec(house, first))
    tasks = topics.tasks(supervisor)
    topics.stored()
    [application] = set(pids(house, tasks).values())
    assert application is not None
    [worker] = {pid for task in tasks.values() for pid in house.indexer_pids(task).values()}
    assert len({log_of(house, task).stat().st_ino for task in tasks.values()}) == 1

    # One task is killed: the others go on.
    house.api("POST", f"/druid/indexer/v1/task/{tasks[third]}/shutdown")
    house.ended(tasks[third])
    after = topics.tasks(supervisor)
    topics.produce()
    topics.stored()
    assert {topic for topic in topics.names if after[topic] != tasks[topic]} == {third}
    assert set(pids(house, after).values()) == {application}

    # The process of all indexers dies: each starts again, for the same task.
    topics.produce()
    os.kill(worker, signal.SIGKILL)
    topics.produce()
    topics.stored()
    assert topics.tasks(supervisor) == after
    assert {pid for task in after.values() for pid in house.indexer_pids(task).values()} != {worker}

    # The application dies: all its tasks fail, and the next ones share another.
    topics.produce()
    house.kill_application(after[first])
    topics.produce()
    topics.stored()
    renewed = topics.tasks(supervisor)
    assert not set(renewed.values()) & set(after.values())
    [other] = set(pids(house, renewed).values())
    assert other not in (None, application)
    assert house.status(after[first]) == "FAILED"

    # One topic grows: it gets an application of its own, its neighbours stay.
    topics.produce(20_000, [fourth])
    topics.stored()

    def moved_out() -> dict[str, str] | None:
        found = topics.tasks(supervisor)
        return found if house.application_pid(found[fourth]) not in (other, None) else None

    moved = wait_for("the topic that grew has its own application", moved_out, 120, lambda: house.logs(STEM))
    assert {topic: task for topic, task in moved.items() if topic != fourth} == {
        topic: task for topic, task in renewed.items() if topic != fourth
    }
    assert house.application_pid(moved[first]) == other
    topics.produce()
    topics.stored()

    house.rest()
    totals = check_exactly_once(house, STEM, range(topics.produced))
    assert totals["unparseable"] == 3
    assert other is not None and psutil.pid_exists(other)  # it waits a minute for more


def test_share_groups_share_one_too(house: House) -> None:
    """Kafka delivers again what the dead process held."""
    topics = Topics(house, 2, "lent")
    topics.produce()
    spec = house.spec(topics.names[0], "lent")
    del spec["ioConfig"]["topic"]
    spec["ioConfig"] |= {"topicPattern": "lent-.*", "smallTopicRate": 20, "period": "PT2S"}
    supervisor = house.supervise(spec)
    tasks = topics.tasks(supervisor)
    topics.stored()
    assert len(set(pids(house, tasks).values()) - {None}) == 1
    [worker] = {pid for task in tasks.values() for pid in house.indexer_pids(task).values()}
    topics.produce()
    os.kill(worker, signal.SIGKILL)
    topics.produce()
    topics.stored()
    assert topics.tasks(supervisor) == tasks
    house.rest()
    check_exactly_once(house, "lent", range(topics.produced))


def test_a_record_that_kills_the_decoder_is_found_and_its_neighbours_are_read(house: House) -> None:
    """It kills the process of all indexers: each of these takes what it had in hand for suspect, too."""
    topics = Topics(house, 3, "deadly")
    house.fail_at("deadly", crash_marker="KILLER")
    topics.produce()
    house.produce(topics.names[0], [b'{"time": "2025-06-01T00:00:00Z", "n": -1, "category": "KILLER"}'])
    topics.produce()
    spec = house.kafka_spec(topics.names[0], "deadly")
    del spec["ioConfig"]["topic"]
    spec["ioConfig"] |= {"topicPattern": "deadly-.*", "smallTopicRate": 20, "period": "PT2S"}
    house.supervise(spec)
    topics.stored()
    wait_for("the record is quarantined", lambda: house.totals("deadly")["unparseable"] == 1, 180)
    house.rest()
    assert check_exactly_once(house, "deadly", range(topics.produced))["unparseable"] == 1


def pattern_spec(house: House, topic: str) -> dict[str, object]:
    """Of all topics that are called as this one is, but for the number."""
    spec = house.kafka_spec(topic, STEM)
    del spec["ioConfig"]["topic"]
    spec["ioConfig"] |= {"topicPattern": f"{STEM}-.*", "smallTopicRate": 20, "period": "PT2S"}
    return spec
