"""A Spark cluster of two workers, which have Java and Spark and nothing else of what indexers need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, numbered, published
from tests.support.spark_cluster import SMALL, SparkCluster
from tests.support.waiting import wait_for

# docs/reference/spark.md: 256 for the executor, and for its one indexer 192 + 5 × 64 of rows + 16 for a consumer.
EXECUTOR_MB = 256 + 192 + 5 * 64 + 16


@pytest.fixture(scope="module")
def on_cluster(house: House, cluster: SparkCluster) -> Iterator[SparkCluster]:
    """The house's tasks run there."""
    cluster.resize(*SMALL)
    with house.set_up_with(**cluster.settings, HEADGATE_HANDOVER_PATIENCE="PT25S"):
        yield cluster


def supervisor_of(house: House, name: str) -> dict[str, Any]:
    found: dict[str, Any] = house.api("GET", f"/api/v1/supervisors/{name}/")
    return found


def started_by(house: House, task: str) -> set[int]:
    """Numbers of the indexers that say in the task's log, with their host, that they have started."""
    told = (house.home.tasks / task / "spark.log").read_text(errors="replace").splitlines()
    words = [dict(word.partition("=")[::2] for word in line.split()) for line in told]
    return {int(w["indexer"]) for w in words if w.get("event") == "started" and w.get("host")}


@pytest.mark.timeout(900)
def test_on_a_full_cluster_a_changed_spec_takes_over(house: House, on_cluster: SparkCluster) -> None:
    """The two cores are taken; the next task says that it waits for one, and gets one of the task before it.

    Spark's master deals the cores out.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, 500))
    spec = house.kafka_spec(topic, taskCount=2, period="PT2S")
    supervisor = house.supervise(spec)
    published(house, topic, 500, 240)
    first = house.running_task(topic)
    wait_for("both indexers' lines are in the task's log", lambda: started_by(house, first) == {0, 1}, 60)
    application = on_cluster.application(first)
    assert application is not None
    assert (application["cores"], application["memoryperexecutor"]) == (2, EXECUTOR_MB)
    assert on_cluster.tells() == []
    capacity = house.api("GET", "/api/v1/capacity/")
    assert (capacity["capacity"], capacity["used"], capacity["free"]) == (2, 2, 0)

    waiting = house.submit(house.spec(house.topic(), idleConfig={"enabled": False}))

    def task_waits() -> bool:
        return [reason["code"] for reason in house.api("GET", f"/api/v1/tasks/{waiting}/")["why_nothing"]] == [
            "waiting_for_slot"
        ]

    wait_for("a task says that it waits", task_waits, 240, on_cluster.logs)
    house.api("POST", f"/druid/indexer/v1/task/{waiting}/shutdown")
    wait_for("it ends when told to", lambda: house.status(waiting) == "SUCCESS", 60, on_cluster.logs)

    stream = Endless(house, topic, 500)
    house.supervise({**spec, "ioConfig": {**spec["ioConfig"], "taskCount": 1}})

    def waits() -> bool:
        seen = supervisor_of(house, supervisor)
        codes = [reason["code"] for reason in seen["why_nothing"]]
        return seen["detailed_state"] == "WAITING_FOR_SLOT" and "waiting_for_slot" in codes and not seen["healthy"]

    wait_for("it says that it waits for a slot", waits, 120, lambda: supervisor_of(house, supervisor))
    wait_for("the first task has made room", lambda: house.status(first) == "SUCCESS", 120, lambda: house.logs(topic))
    second = house.running_task(topic)
    assert second != first
    wait_for("it is healthy", lambda: supervisor_of(house, supervisor)["healthy"], 60)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))


def test_without_the_secret_nobody_is_heard(cluster: SparkCluster) -> None:
    """Row 22 of the security checklist: Spark's master does not take a worker that does not know it."""
    cluster.resize(*SMALL)
    said = cluster.says_to_a_stranger()
    assert "Failed to connect to master" in said
    assert "Successfully registered" not in said
    assert [worker["host"] for worker in cluster.seen()["workers"]].count("127.0.0.4") == 0
