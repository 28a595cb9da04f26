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
from tests.support.processes import command_lines
from tests.support.records import Endless, published, published_rows
from tests.support.waiting import wait_for
from tests.support.yarn_cluster import YarnCluster, yarn_cluster

MACHINES, CORES = 1, 4  # where there are two, what a task is sent is mostly unpacked on both
TAKEN = 2  # by a task, for its driver and its indexer
MEMORY_MB = 5120  # a task takes 2304: 512 and 832, each with 384 more, in parts of 256
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


@pytest.mark.timeout(1800)
def test_tasks_run_are_killed_and_hang_on_yarn(house: House, yarn: YarnCluster) -> None:
    """Row 45 of the failure matrix: its operator kills a driver, Headgate one that hangs. Nothing is lost or twice."""
    topic = house.topic()
    house.supervise(house.spec(topic, startDelay="PT0S", taskDuration="PT1H"))
    stream = Endless(house, topic)
    published(house, topic, 500, 400)
    killed = house.running_task(topic)
    application = application_of(house, killed)

    # What runs is what was shipped; its token is on no command line, and in a folder that only its user can read.
    shown = yarn.application(application)
    assert (shown["name"], shown["state"], shown["applicationTags"]) == (killed, "RUNNING", "headgate")
    processes = yarn.containers(application)
    for found in programs_of(processes):
        assert found
        assert [path for path in found if not str(path).startswith(f"{yarn.folder}/machine-")] == []
    assert len(yarn.containers(application, 1)) < len(processes)
    [folder] = yarn.staging.glob(f"*/.sparkStaging/{application}")
    assert folder.stat().st_mode & 0o777 == 0o700
    [token] = {token for process in processes if (token := process.environ().get("HEADGATE_TASK_TOKEN"))}
    assert [line for _, line in command_lines(psutil.process_iter()) if token in line] == []

    wait_for("its log can be read", lambda: "event=started" in log_of(house, killed), 60, yarn.logs)
    assert yarn.metrics["allocatedVirtualCores"] == TAKEN

    def capacity() -> tuple[int, int, int]:
        found = house.api("GET", "/api/v1/capacity/")
        return found["capacity"], found["used"], found["free"]

    wait_for("the capacity is YARN's", lambda: capacity() == (yarn.cores, TAKEN, yarn.cores - TAKEN), 30, capacity)

    yarn.kill(application)
    hangs = another_task(house, yarn, topic, killed)
    assert house.status(killed) == "FAILED"
    assert "KILLED" in house.api("GET", f"/api/v1/tasks/{killed}/")["error"]

    hanging = application_of(house, hangs)
    for process in yarn.containers(hanging, 1):
        if process.name() != "bash":  # the NodeManager's own, which waits for the others
            process.suspend()
    last = another_task(house, yarn, topic, hangs)
    assert house.status(hangs) == "FAILED"
    wait_for("Headgate has it killed", lambda: yarn.application(hanging)["state"] == "KILLED", 60, yarn.logs)
    gone = (application, hanging)
    wait_for("their processes are gone", lambda: not any(map(yarn.containers, gone)), 60, yarn.logs)
    published(house, topic, published_rows(house, topic) + 500, 180)

    records = stream.finish()
    published(house, topic, records, 180)
    check_exactly_once(house, topic, range(records))
    house.rest()
    assert house.status(last) == "SUCCESS"
    application = application_of(house, last)
    wait_for("YARN has its end", lambda: yarn.application(application)["state"] == "FINISHED", 60, yarn.logs)
    assert yarn.application(application)["finalStatus"] == "SUCCEEDED"
