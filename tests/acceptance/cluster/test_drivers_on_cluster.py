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

LANES = ("offset_range", "share_group")


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


def goes_on(house: House, topics: list[str]) -> None:
    """Each gets a thousand rows more."""
    for topic, rows in [(topic, published_rows(house, topic)) for topic in topics]:
        published(house, topic, rows + 1_000, 180)


@pytest.mark.timeout(2400)
def test_a_machine_and_the_acting_master_die(house: House, on_cluster: SparkCluster) -> None:
    """Row 44 of the failure matrix: 0 lost, 0 twice, and what starts afterwards starts by the master that took over."""
    topics = {lane: house.topic() for lane in LANES}
    for lane, topic in topics.items():
        house.supervise(lane_spec(house, lane, topic, startDelay="PT0S", taskDuration="PT1H"))
    streams = [Endless(house, topic) for topic in topics.values()]
    for topic in topics.values():
        published(house, topic, 500, 300)
    tasks = {topic: house.running_task(topic) for topic in topics.values()}

    # A machine, its Spark worker and all that it runs: no other machine comes.
    hosts = {topic: host_of(house, on_cluster, task) for topic, task in tasks.items()}
    dead = hosts[topics["share_group"]]
    wait_for("its log can be read", lambda: "started" in log_of(house, tasks[topics["share_group"]]), 60)
    on_cluster.lose(dead, replaced=False)
    for topic in [topic for topic, host in hosts.items() if host == dead]:
        lost, tasks[topic] = tasks[topic], another_task(house, on_cluster, topic, tasks[topic])
        assert host_of(house, on_cluster, tasks[topic]) != dead
        assert house.status(lost) == "FAILED"
        assert "on the Spark cluster" in house.api("GET", f"/api/v1/tasks/{lost}/log/", expect=503)["detail"]
    goes_on(house, list(topics.values()))
    on_cluster.replace(dead)

    # The acting master: the drivers go on, and the standby has them. A task that is new meanwhile waits for it.
    before = on_cluster.lose_master()
    late = house.topic()
    house.supervise(lane_spec(house, "offset_range", late, startDelay="PT0S", taskDuration="PT1H"))
    wait_for("its first task waits for a master", lambda: "no master" in message_of(house, late), 30)
    on_cluster.await_master()
    goes_on(house, list(topics.values()))
    assert tasks == {topic: house.running_task(topic) for topic in topics.values()}
    assert all(host_of(house, on_cluster, task) for task in tasks.values())

    # The first master is still away, and tasks start: the new one, and the next of a supervisor that reads.
    streams.append(Endless(house, late))
    published(house, late, 500, 300)
    tasks[late] = house.running_task(late)
    handed_off = topics["offset_range"]
    house.api("POST", f"/api/v1/supervisors/{handed_off}/handoff/")
    tasks[handed_off] = another_task(house, on_cluster, handed_off, tasks[handed_off])

    # It comes back as a standby, and the other one dies: what started in between goes on, too.
    on_cluster.return_master(before)
    on_cluster.lose_master()
    assert on_cluster.await_master() is before
    goes_on(house, list(tasks))
    assert tasks == {topic: house.running_task(topic) for topic in tasks}

    for topic, stream in zip(tasks, streams, strict=True):
        records = stream.finish()
        published(house, topic, records, 180)
        check_exactly_once(house, topic, range(records))
    assert on_cluster.tells() == []
