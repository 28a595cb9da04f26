"""Drivers on YARN, by what its ResourceManager and NodeManagers answer: a small server speaks as they do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import cache
from django.utils import timezone

from controlplane.common.errors import Unavailable
from controlplane.operations.doctor import outside
from controlplane.spark import cluster_drivers, spark_master
from controlplane.tasks import capacity, driver_rounds, drivers, host_logs, launcher
from controlplane.tasks.models import ClusterDriver, Status, Task
from tests.support.django_cast import Cast
from tests.support.submitted import submitted

ID, CONTAINER = "application_1796042000000_0001", "container_1796042000000_0001_01_000001"


class Yarn(ThreadingHTTPServer):
    """A ResourceManager and a NodeManager; ``state`` is that of the application, ``log`` what its driver wrote."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name, self.state, self.log = "", "RUNNING", b""
        self.has_container, self.cores = True, 3
        self.growth = b""  # of the log, after each answer
        self.is_standby = False
        self.killed: list[tuple[str, str]] = []
        self.asked: list[dict[str, list[str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def application(self) -> dict[str, Any]:
        place = {"amContainerLogs": f"{self.url}/node/containerlogs/{CONTAINER}/ingest"} if self.has_container else {}
        return {
            "id": ID, "user": "ingest", "name": self.name, "queue": "default", "state": self.state,
            "finalStatus": "UNDEFINED", "trackingUI": "ApplicationMaster", "diagnostics": "",
            "applicationType": "SPARK", "applicationTags": "headgate", "startedTime": 1796042001000, "finishedTime": 0,
            "allocatedMB": 3072, "allocatedVCores": self.cores, "runningContainers": self.cores, **place,
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    server: Yarn

    def do_GET(self) -> None:
        yarn, query = self.server, parse_qs(urlsplit(self.path).query)
        path = urlsplit(self.path).path
        if yarn.is_standby:
            self.send_response(307)
            self.send_header("Location", "http://other.example:8088" + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path == "/ws/v1/cluster/metrics":
            metrics = {"totalVirtualCores": 8, "allocatedVirtualCores": 3, "availableVirtualCores": 5, "totalMB": 8192}
            self._answer(json.dumps({"clusterMetrics": {**metrics, "activeNodes": 2}}).encode())
        elif path == "/ws/v1/cluster/apps":
            yarn.asked.append(query)
            found = [yarn.application] if yarn.state in query["states"][0].split(",") else []
            self._answer(json.dumps({"apps": {"app": found} if found else None}).encode())
        else:
            assert path == f"/ws/v1/node/containers/{CONTAINER}/logs/stderr"
            content = self._log(int(query["size"][0]))
            yarn.log += yarn.growth  # before the answer can be read
            self._answer(content)

    def _log(self, count: int) -> bytes:
        log = self.server.log
        part = log[:count] if count >= 0 else log[max(0, len(log) + count) :]
        head = f"Container: {CONTAINER} on vm_1\nLogAggregationType: LOCAL\n{'=' * 20}\nLogType:stderr\n"
        head += f"LogLastModifiedTime:Sun Nov 29 12:52:00 +0000 2026\nLogLength:{len(log)}\nLogContents:\n"
        return head.encode() + part + b"\nEnd of LogType:stderr\n***\n\n"

    def do_PUT(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.killed.append((urlsplit(self.path).path, sent["state"]))
        self._answer(b'{"state":"ACCEPTED"}', 202)

    def _answer(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def yarn(settings: Any, tmp_path: Path) -> Iterator[Yarn]:
    server = Yarn()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    settings.SPARK_MASTER, settings.SPARK_MASTER_WEB = "yarn", [server.url]
    settings.SPARK_DEPLOY_MODE, settings.TASK_DIR, settings.WORKER_CAPACITY = "cluster", tmp_path, 0
    cache.delete("spark.cluster")
    yield server
    server.shutdown()
    server.server_close()
    cache.delete("spark.cluster")


@pytest.fixture
def task(cast: Cast, yarn: Yarn) -> Task:
    yarn.name = cast.task.pk
    return submitted(cast, ID)


def watched(task: Task) -> Task:
    cache.delete("spark.cluster")
    driver_rounds.watch()
    task.refresh_from_db()
    return task


def test_the_pool_is_yarns(task: Task, yarn: Yarn) -> None:
    pool = capacity.shown_pool()
    assert (pool.size, pool.used, pool.is_of_spark) == (8, 3, True)
    cluster = spark_master.cluster()
    assert cluster is not None
    [application] = cluster.applications
    assert (application.name, application.cores, application.waiting) == (task.pk, 2, False)  # one is the driver's
    assert all(query["applicationTags"] == ["headgate"] for query in yarn.asked)
    yarn.cores = 1
    cache.delete("spark.cluster")
    assert not spark_master.has_cores(task.pk)


def test_one_that_waits_for_its_first_container_is_waited_for(task: Task, yarn: Yarn) -> None:
    yarn.state, yarn.has_container, yarn.cores = "ACCEPTED", False, -1
    assert watched(task).message == driver_rounds._WAITS
    assert task.launched_at is not None and timezone.now() - task.launched_at < timedelta(seconds=30)
    Task.objects.filter(pk=task.pk).update(message="", launched_at=timezone.now() - timedelta(seconds=60))
    yarn.has_container = True  # its JVM starts
    assert watched(task).message == ""
    assert task.launched_at is not None and timezone.now() - task.launched_at > timedelta(seconds=30)


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "KILLED"])
def test_one_that_dies_before_its_first_word_says_why(task: Task, yarn: Yarn, state: str) -> None:
    yarn.log = b"a line\nModuleNotFoundError: no module\n\n"
    assert watched(task).status == Status.PENDING
    yarn.state = state
    assert watched(task).status == Status.FAILED
    assert task.error == (
        f"The driver ended before it reported ({state} on the Spark cluster). Its last line was: ModuleNotFoundError: "
        "no module"
    )


def test_one_whose_task_has_ended_is_killed(task: Task, yarn: Yarn) -> None:
    Task.objects.update(status=Status.FAILED, ended_at=timezone.now() - timedelta(seconds=11))
    watched(task)
    assert yarn.killed == [(f"/ws/v1/cluster/apps/{ID}/state", "KILLED")]


def test_a_resourcemanager_that_is_silent_or_on_standby_says_nothing(task: Task, yarn: Yarn, settings: Any) -> None:
    yarn.is_standby = True
    for pages in ([yarn.url], ["http://127.0.0.1:9"]):
        settings.SPARK_MASTER_WEB = pages
        assert watched(task).status == Status.PENDING
        assert not cluster_drivers.kill(ID)
    Task.objects.filter(pk=task.pk).update(launched_at=None, host="", message="")
    assert launcher.launch(task.pk) is False
    task.refresh_from_db()
    assert task.message == "Its driver waits: no ResourceManager of YARN answers at HEADGATE_SPARK_MASTER_WEB."
    yarn.is_standby = False
    settings.SPARK_MASTER_WEB = ["http://127.0.0.1:9", yarn.url]
    assert not drivers.wait_for_master(task)


@pytest.mark.parametrize("growth", [b"", b"more\n", b"x" * 100_000])
def test_its_log_is_read_at_the_nodemanager(task: Task, yarn: Yarn, growth: bytes) -> None:
    """Also while it grows between two questions."""
    log = "".join(f"line {n}\n" for n in range(100)).encode()
    size = len(log)
    watched(task)
    yarn.growth = growth
    for offset, count, part in (
        (-16, 16, b"line 98\nline 99\n"),
        (7, 7, b"line 1\n"),
        (0, size, log),
        (size - 8, 500, b"line 99\n"),
        (size + 5, 7, b""),
        (0, 0, b""),
    ):
        yarn.log = log
        assert host_logs.read("ingest-1", task.pk, offset, count) == (size, part)
    ClusterDriver.objects.update(
        log_address="http://127.0.0.1:9/ws/v1/node/containers/container_e03_17_2_01_000001/logs/stderr?format=text"
    )
    with pytest.raises(
        Unavailable, match=r"or does not answer\. Read it with: yarn logs -applicationId application_17_2"
    ):
        host_logs.read("ingest-1", task.pk, 0, 10)


def test_the_doctor_asks_it(yarn: Yarn, settings: Any) -> None:
    def found() -> tuple[str, str]:
        cache.delete("spark.cluster")
        first = next(finding for finding in outside.check_spark() if finding.applies)
        return first.state, first.found

    state, text = found()
    assert state == outside.OK
    assert text.endswith(f"YARN at {yarn.url} has 8 cores")
    settings.SPARK_MASTER_WEB = ["http://127.0.0.1:9"]
    assert found() == (outside.FAIL, "no ResourceManager of YARN answers at http://127.0.0.1:9")
