"""A worker goes on after its broker was gone while it had a job in hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from controlplane.embedded.valkey import Valkey
from tests.support.waiting import wait_for

_WORKER = """
import pathlib, sys, time
from celery import Celery

url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
app = Celery("jobs", broker=url)
app.conf.update(
    task_acks_late=True, worker_prefetch_multiplier=1, task_ignore_result=True,
    broker_connection_retry_on_startup=True, broker_transport="controlplane.config.broker_connection:Transport",
)

@app.task(name="job")
def job(name, seconds):
    (folder / f"{name}.begun").touch()
    time.sleep(seconds)
    (folder / f"{name}.done").touch()

app.worker_main(["worker", "--pool", "prefork", "--concurrency", "2", "--without-gossip", "--without-mingle"])
"""


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    with Valkey(tmp_path / "home") as running:
        yield running


@pytest.mark.parametrize("lasts_s", [2, 6, 25], ids=["ends-meanwhile", "ends-about-then", "ends-afterwards"])
def test_the_broker_dies_while_a_job_runs(valkey: Valkey, tmp_path: Path, lasts_s: int) -> None:
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-c", _WORKER, valkey.url, str(tmp_path)], stdout=output, stderr=output
        )
    try:
        # Not this process' current application: shared tasks of the tests after this one would go to its broker.
        jobs = Celery("jobs", broker=valkey.url, set_as_current=False)
        jobs.send_task("job", ("first", lasts_s))
        wait_for("the job runs", (tmp_path / "first.begun").exists, 60, log.read_text)
        valkey.kill()
        wait_for("the worker notices", lambda: "Connection to broker lost" in log.read_text(), 60, log.read_text)
        valkey.restart()
        jobs.send_task("job", ("second", 0))
        wait_for("the next job is done", (tmp_path / "second.done").exists, 60, log.read_text)
        wait_for("the first is done", (tmp_path / "first.done").exists, 60, log.read_text)
        jobs.send_task("job", ("third", 0))
        wait_for("the job after it is done", (tmp_path / "third.done").exists, 60, log.read_text)
        assert worker.poll() is None
    finally:
        worker.kill()
        worker.wait()
