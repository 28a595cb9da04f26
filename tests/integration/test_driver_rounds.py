"""Drivers on a Spark cluster, by what its master's and its workers' pages say: a small server speaks as they do."""

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
from controlplane.spark import cluster_drivers
from controlplane.tasks import driver_rounds, drivers, host_logs, launcher, watching
from controlplane.tasks.models import ClusterDriver, Host, Status, Task
from tests.support.django_cast import Cast
from tests.support.submitted import submitted

ID = "driver-20260101000000-0001"
OUTPUT = f"INFO ClientEndpoint: Driver successfully submitted as {ID}\nINFO ClientEndpoint: State of {ID} is RUNNING\n"


class Spark(ThreadingHTTPServer):
    """A master and a worker; ``state`` is that of the driver, ``log`` what it has written."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state, self.log = "RUNNING", b""
        self.status = "ALIVE"  # of the master
        self.killed: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Spark

    def do_GET(self) -> None:
        spark = self.server
        if self.path == "/json/":
            driver = {"id": ID, "state": spark.state, "worker": "None" if spark.state == "SUBMITTED" else "w1"}
            document = {"status": spark.status, "activeapps": [], "activedrivers": [driver], "completeddrivers": []}
            worker = {"id": "w1", "state": "ALIVE", "cores": 1, "coresused": 1, "memory": 1, "webuiaddress": spark.url}
            self._answer(json.dumps({**document, "workers": [worker]}).encode())
            return
        query = parse_qs(urlsplit(self.path).query)
        assert self.path.startswith("/log/?") and query["driverId"] == [ID]
        start, count = int(query["offset"][0]), int(query["byteLength"][0])
        part, size = spark.log[start : start + count], len(spark.log)
        self._answer(b"==== Bytes %d-%d of %d of /w/stderr ====\n%b" % (start, start + len(part), size, part))

    def do_POST(self) -> None:
        self.server.killed += parse_qs(urlsplit(self.path).query)["id"]
        self.send_response(302)
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def spark(settings: Any, tmp_path: Path) -> Iterator[Spark]:
    server = Spark()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    settings.SPARK_MASTER, settings.SPARK_MASTER_WEB = "spark://127.0.0.1:7077", [server.url]
    settings.SPARK_DEPLOY_MODE, settings.TASK_DIR = "cluster", tmp_path
    cache.delete("spark.cluster")
    yield server
    server.shutdown()
    server.server_close()
    cache.delete("spark.cluster")


@pytest.fixture
def task(cast: Cast, spark: Spark) -> Task:
    return submitted(cast, ID)


def watched(task: Task) -> Task:
    cache.delete("spark.cluster")
    driver_rounds.watch()
    task.refresh_from_db()
    return task


def test_the_id_is_read_from_what_the_last_submission_wrote(cast: Cast, spark: Spark, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text(f"{drivers.first_line('t')}{OUTPUT}{drivers.first_line('t')}no Java\n")
    assert not drivers.record("t", log)  # it was never submitted
    drivers.begin("t", on_cluster=True)
    assert drivers.unrecorded() == ["t"]
    assert not drivers.record("t", log)
    log.write_text(f"{drivers.first_line('t')}{OUTPUT}")
    assert drivers.record("t", log)
    assert (ClusterDriver.objects.get().driver_id, drivers.unrecorded()) == (ID, [])


@pytest.mark.django_db(transaction=True)
def test_another_launch_ends_the_driver_before_it(spark: Spark) -> None:
    ClusterDriver.objects.create(pk="t", driver_id=ID, submitted_at=timezone.now())
    drivers.begin("t", on_cluster=True)
    assert (spark.killed, ClusterDriver.objects.get().driver_id) == ([ID], "")
    drivers.begin("t", on_cluster=False)  # the setting was changed meanwhile
    assert (spark.killed, ClusterDriver.objects.count()) == ([ID], 0)


def test_a_driver_that_dies_before_its_first_word_says_why(task: Task, spark: Spark) -> None:
    spark.log = b"a line\nModuleNotFoundError: no module\n\n"
    assert watched(task).status == Status.PENDING
    spark.state = "FAILED"
    assert watched(task).status == Status.FAILED
    assert task.error == (
        "The driver ended before it reported (FAILED on the Spark cluster). Its last line was: ModuleNotFoundError: no "
        "module"
    )


def test_one_that_waits_for_a_core_is_waited_for(task: Task, spark: Spark) -> None:
    spark.state = "SUBMITTED"
    assert watched(task).message == driver_rounds._WAITS
    assert task.launched_at is not None and timezone.now() - task.launched_at < timedelta(seconds=30)
    assert ClusterDriver.objects.get().log_address == ""


def test_one_that_reported_and_died_is_not_waited_for(task: Task, spark: Spark) -> None:
    now = timezone.now()
    spark.state = "ERROR"
    Task.objects.update(status=Status.RUNNING, last_heartbeat_at=now)
    assert watched(task).status == Status.RUNNING  # its last word may be on its way
    Task.objects.update(last_heartbeat_at=now - timedelta(seconds=4))
    assert watched(task).status == Status.FAILED
    assert task.error.startswith("The driver ended without a report (ERROR on the Spark cluster).")


def test_a_driver_whose_task_has_ended_is_killed_after_a_while(task: Task, spark: Spark) -> None:
    now = timezone.now()
    for seconds, killed in ((5, []), (11, [ID])):
        Task.objects.update(status=Status.FAILED, ended_at=now - timedelta(seconds=seconds))
        watched(task)
        assert spark.killed == killed


def test_a_silent_master_says_nothing(task: Task, spark: Spark, settings: Any) -> None:
    settings.SPARK_MASTER_WEB = ["http://127.0.0.1:9"]
    assert watched(task).status == Status.PENDING
    assert not cluster_drivers.kill(ID)


def test_a_task_waits_while_no_master_acts(task: Task, spark: Spark) -> None:
    """Row 44 of the failure matrix: a standby would keep the submission without an answer."""
    Task.objects.filter(pk=task.pk).update(launched_at=None, host="", last_heartbeat_at=None, message="")
    for spark.status in ("STANDBY", "RECOVERING"):
        assert launcher.launch(task.pk) is False
        task.refresh_from_db()
        assert (task.status, task.launched_at) == (Status.PENDING, None)
        assert task.message == "Its driver waits: no master of the Spark cluster says that it is ALIVE."
    spark.status = "ALIVE"
    assert not drivers.wait_for_master(task)


def test_the_end_of_its_host_costs_it_nothing(task: Task, spark: Spark) -> None:
    Host.objects.create(name="ingest-1", folder="f", identity="i", seen_at=timezone.now() - timedelta(hours=1))
    assert not Task.objects.filter(watching.of_gone_hosts(), pk=task.pk).exists()
    ClusterDriver.objects.update(driver_id="")
    assert Task.objects.filter(watching.of_gone_hosts(), pk=task.pk).exists()
    assert launcher.is_dead(task.pk) is False


def test_its_log_is_read_at_the_spark_worker(task: Task, spark: Spark) -> None:
    spark.log = "".join(f"line {n}\n" for n in range(100)).encode()
    size = len(spark.log)
    watched(task)
    assert host_logs.read("ingest-1", task.pk, -16, 16) == (size, b"line 98\nline 99\n")
    assert host_logs.read("ingest-1", task.pk, 7, 7) == (size, b"line 1\n")
    assert host_logs.read("ingest-1", task.pk, size + 5, 7) == (size, b"")
    ClusterDriver.objects.update(log_address="http://127.0.0.1:9/log/?driverId=x")
    with pytest.raises(Unavailable, match="on the Spark cluster, and the Spark worker does not answer"):
        host_logs.read("ingest-1", task.pk, 0, 10)
