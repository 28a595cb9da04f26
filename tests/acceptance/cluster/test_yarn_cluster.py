"""Tasks on YARN, by Hadoop's mini cluster: they store each record once, are killed, hang, and their logs are read.

Under YARN: what its ResourceManager and NodeManagers answer, and do with containers, is Hadoop's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.processes import command_lines
from tests.support.records import Endless, published, published_rows
from tests.support.waiting import wait_for
from tests.support.yarn_cluster import YarnCluster, yarn_cluster

LANES = ("offset_range", "share_group")
MACHINES, CORES = 2, 3  # a task takes two, its driver's and its indexer's
MEMORY_MB = 3072  # a task takes 2304: 512 and 832, each with 384 more, in parts of 256
SETTINGS = {
    "HEADGATE_AUTO_COMPACTION": "0",  # an application for merges would take cores
    "HEADGATE_TASK_START_TIMEOUT": "600",  # to unpack Python takes a busy machine minutes
}


@pytest.fixture(scope="module")
def yarn(house: House) -> Iterator[YarnCluster]:
    """The house's tasks run there, with the Python and the code that they are sent."""
    with (
        yarn_cluster(house.home.path / "yarn", MACHINES, MEMORY_MB, CORES) as cluster,
        house.set_up_with(**cluster.settings, **SETTINGS),
    ):
        yield cluster


def application_of(house: House, task: str) -> str:
    rows = house.sql("SELECT driver_id FROM tasks_clusterdriver WHERE name = %s", task)
    return str(rows[0][0])


def log_of(house: House, task: str) -> str:
    """By REST, from the NodeManager that has it."""
    headers = {"Authorization": f"Bearer {house.token}"}
    answer = httpx2.get(f"{house.url}/api/v1/tasks/{task}/log/", headers=headers, trust_env=False, timeout=30.0)
    return answer.text if answer.status_code == 200 else ""


def another_task(house: House, yarn: YarnCluster, topic: str, before: str) -> str:
    def reading() -> str | None:
        task = house.running_task(topic)
        return task if task != before else None

    return wait_for("another task reads", reading, 180, lambda: house.logs(topic) + yarn.logs())


def programs_of(processes: list[psutil.Process]) -> tuple[set[Path], set[Path]]:
    """Where processes of Python have their interpreter from, and the folders of their packages."""
    interpreters, folders = set(), set()
    for process in processes:
        with suppress(psutil.Error):
            if "python" in process.name():
                interpreters.add(Path(process.exe()))
                folders |= {Path(name) for name in process.environ()["PYTHONPATH"].split(":") if Path(name).is_dir()}
    return interpreters, folders


@pytest.mark.timeout(2400)
def test_tasks_run_are_killed_and_hang_on_yarn(house: House, yarn: YarnCluster) -> None:
    """Row 45 of the failure matrix: its operator kills a driver, Headgate one that hangs. Nothing is lost or twice."""
    topics = [house.topic() for _ in LANES]
    for lane, topic in zip(LANES, topics, strict=True):
        house.supervise(lane_spec(house, lane, topic, startDelay="PT0S", taskDuration="PT1H"))
    streams = [Endless(house, topic) for topic in topics]
    wait_for(
        "rows are stored",
        lambda: all(published_rows(house, topic) >= 500 for topic in topics),
        400,
        lambda: "\n".join(map(house.logs, topics)) + yarn.logs(),
    )
    tasks = [house.running_task(topic) for topic in topics]
    applications = [application_of(house, task) for task in tasks]

    # What runs is what was shipped; its token is on no command line, and in a folder that only its user can read.
    for task, application in zip(tasks, applications, strict=True):
        shown = yarn.application(application)
        assert (shown["name"], shown["state"], shown["applicationTags"]) == (task, "RUNNING", "headgate")
        processes = yarn.containers(application)
        for found in programs_of(processes):
            assert found
            assert [path for path in found if not str(path).startswith(f"{yarn.folder}/machine-")] == []
        assert len(yarn.containers(application, 1)) < len(processes)
        [folder] = yarn.staging.glob(f"*/.sparkStaging/{application}")
        assert folder.stat().st_mode & 0o777 == 0o700
    tokens = {t for a in applications for p in yarn.containers(a) if (t := p.environ().get("HEADGATE_TASK_TOKEN"))}
    assert len(tokens) == len(tasks)
    assert [line for _, line in command_lines(psutil.process_iter()) if any(t in line for t in tokens)] == []

    for task in tasks:
        wait_for("its log can be read", lambda task=task: "event=started" in log_of(house, task), 60, yarn.logs)
    taken = 2 * len(tasks)
    assert yarn.metrics["allocatedVirtualCores"] == taken

    def capacity() -> tuple[int, int, int]:
        found = house.api("GET", "/api/v1/capacity/")
        return found["capacity"], found["used"], found["free"]

    wait_for("the capacity is YARN's", lambda: capacity() == (yarn.cores, taken, yarn.cores - taken), 30, capacity)

    # Both at once: an application that its operator kills, and a driver that hangs.
    yarn.kill(applications[0])
    for process in yarn.containers(applications[1], 1):
        if process.name() != "bash":  # the NodeManager's own, which waits for the others
            process.suspend()
    later = [another_task(house, yarn, *pair) for pair in zip(topics, tasks, strict=True)]
    assert [house.status(task) for task in tasks] == ["FAILED", "FAILED"]
    assert "KILLED" in house.api("GET", f"/api/v1/tasks/{tasks[0]}/")["error"]
    wait_for("Headgate has it killed", lambda: yarn.application(applications[1])["state"] == "KILLED", 60, yarn.logs)
    wait_for("their processes are gone", lambda: not any(map(yarn.containers, applications)), 60, yarn.logs)
    for topic in topics:
        published(house, topic, published_rows(house, topic) + 500, 180)

    for topic, stream in zip(topics, streams, strict=True):
        records = stream.finish()
        published(house, topic, records, 180)
        check_exactly_once(house, topic, range(records))
    house.rest()
    for task in later:
        assert house.status(task) == "SUCCESS"
        application = application_of(house, task)
        wait_for("YARN has its end", lambda a=application: yarn.application(a)["state"] == "FINISHED", 60, yarn.logs)
        assert yarn.application(application)["finalStatus"] == "SUCCEEDED"
