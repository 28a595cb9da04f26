"""Drivers on a Spark cluster with a standby master: a machine dies with its driver, then the master that acts.

Under Spark: what its masters and workers do with drivers of others is Spark's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.records import Endless, published, published_rows
from tests.support.spark_cluster import LARGE, SparkCluster
from tests.support.waiting import wait_for


@pytest.fixture(scope="module")
def on_cluster(house: House, cluster: SparkCluster) -> Iterator[SparkCluster]:
    """The house's drivers run there, by both masters' addresses."""
    settings = {
        "HEADGATE_SPARK_DEPLOY_MODE": "cluster",
        "HEADGATE_SPARK_PYTHON": "installed",  # to unpack it takes longer than all that is looked at
        "HEADGATE_AUTO_COMPACTION": "0",  # its application would take cores
    }
    with (
        cluster.code_installed(),
        cluster.with_standby(*LARGE),
        house.set_up_with(**cluster.settings, **settings),
    ):
        yield cluster


def host_of(house: House, cluster: SparkCluster, task: str) -> str:
    """The machine of a task's driver, once the master says where it runs."""

    def place() -> str:
        rows = house.sql("SELECT driver_id FROM tasks_clusterdriver WHERE name = %s AND driver_id <> ''", task)
        return cluster.host_of_driver(rows[0][0]) if rows else ""

    return wait_for(f"the driver of {task} has a machine", place, 60, cluster.logs)


def log_of(house: House, task: str) -> str:
    """By REST, from the Spark worker that has it."""
    answer = httpx2.get(
        f"{house.url}/api/v1/tasks/{task}/log/", headers={"Authorization": f"Bearer {house.token}"}, trust_env=False
    )
    return answer.text if answer.status_code == 200 else ""


def message_of(house: House, topic: str) -> str:
    """Of the datasource's newest task."""
    rows = house.sql(
        "SELECT t.message FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id"
        " WHERE d.name = %s ORDER BY t.created_at DESC LIMIT 1",
        topic,
    )
    return rows[0][0] if rows else ""


def another_task(house: House, cluster: SparkCluster, topic: str, before: str) -> str:
    def reading() -> str | None:
        task = house.running_task(topic)
        return task if task != before else None

    return wait_for("another task reads", reading, 180, lambda: house.logs(topic) + cluster.logs())


def goes_on(house: House, topic: str) -> None:
    """It gets a thousand rows more."""
    published(house, topic, published_rows(house, topic) + 1_000, 180)


@pytest.mark.timeout(1800)
def test_a_machine_and_the_acting_master_die(house: House, on_cluster: SparkCluster) -> None:
    """Row 44 of the failure matrix: 0 lost, 0 twice, and what starts afterwards starts by the master that took over."""
    topic, late = house.topic(), house.topic()
    house.supervise(lane_spec(house, "share_group", topic, startDelay="PT0S", taskDuration="PT1H"))
    streams = {topic: Endless(house, topic)}
    published(house, topic, 500, 300)
    lost = house.running_task(topic)

    # A machine, its Spark worker and all that it runs: no other machine comes.
    dead = host_of(house, on_cluster, lost)
    wait_for("its log can be read", lambda: "started" in log_of(house, lost), 60)
    on_cluster.lose(dead, replaced=False)
    task = another_task(house, on_cluster, topic, lost)
    assert host_of(house, on_cluster, task) != dead
    assert house.status(lost) == "FAILED"
    assert "on the Spark cluster" in house.api("GET", f"/api/v1/tasks/{lost}/log/", expect=503)["detail"]
    goes_on(house, topic)
    on_cluster.replace(dead)

    # The acting master: the driver goes on, and the standby has it. A task that is new meanwhile waits for it.
    before = on_cluster.lose_master()
    house.supervise(lane_spec(house, "offset_range", late, startDelay="PT0S", taskDuration="PT1H"))
    wait_for("its first task waits for a master", lambda: "no master" in message_of(house, late), 30)
    on_cluster.await_master()
    goes_on(house, topic)
    assert house.running_task(topic) == task
    assert host_of(house, on_cluster, task)

    # The first master is still away, and the new task starts.
    streams[late] = Endless(house, late)
    published(house, late, 500, 300)
    tasks = {topic: task, late: house.running_task(late)}

    # It comes back as a standby, and the other one dies: what started in between goes on, too.
    on_cluster.return_master(before)
    on_cluster.lose_master()
    assert on_cluster.await_master() is before
    for reads in tasks:
        goes_on(house, reads)
    assert tasks == {reads: house.running_task(reads) for reads in tasks}

    for reads, stream in streams.items():
        records = stream.finish()
        published(house, reads, records, 180)
        check_exactly_once(house, reads, range(records))
    assert on_cluster.tells() == []
