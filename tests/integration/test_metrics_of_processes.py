"""What processes do, for Prometheus: publishes, background jobs, questions to Kafka; and the port of a worker."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.conf import LazySettings
from django.test import Client

from controlplane.common import measures
from controlplane.config import metrics_port
from controlplane.connections import kafka
from controlplane.metrics import record_sums
from controlplane.metrics.celery_tasks import sum_up_records
from controlplane.tasks.lifecycle import new_token
from ingestion.specs.messages.protocol import Advance, Outcomes
from tests.support.django_cast import Cast
from tests.support.prometheus import OPEN_METRICS, SITE, SITE_TOKEN, Values, read_page, values_of
from tests.support.publishes import request

PROJECT = Path(__file__).parents[2]


def values() -> Values:
    return values_of(measures.process_registry().collect())


def new_values(before: Values, name: str) -> dict[tuple[str, ...], float]:
    """By labels, how much a counter has grown."""
    after = values()
    grown = {labels: after[n, labels] - before.get((n, labels), 0) for n, labels in after if n == name}
    return {labels: more for labels, more in grown.items() if more}


def test_a_publish_is_counted_by_its_outcome(cast: Cast) -> None:
    before, task = values(), cast.task
    client = Client(headers={"Authorization": f"Bearer {new_token(task)}"})
    indexer = f"/internal/tasks/{task.pk}/indexers/0"

    def post(path: str, body: object) -> int:
        return client.post(f"{indexer}/{path}", body, content_type="application/json").status_code

    here = {"cluster_id": "cluster-1", "topic_id": "topic-id-1", "host": "h", "pid": 1}
    epoch = client.post(f"{indexer}/start", here, content_type="application/json").json()["epoch"]
    batch, older = (request(e, outcomes={1: Outcomes(thrown_away=[(700, 710)])}) for e in (epoch, epoch - 1))
    wrong = batch.model_copy(update={"publish_id": uuid.uuid4(), "progress": {1: Advance(start=700, end=710)}})
    statuses = [post("publish", b.model_dump(mode="json")) for b in (batch, older, wrong)]
    assert statuses == [200, 409, 400]
    counted = new_values(before, "headgate_publish_duration_seconds_count")
    assert counted == {("stream", "ok"): 1, ("stream", "fenced"): 1, ("stream", "invalid"): 1}


def test_a_background_job_is_counted_by_its_outcome(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    before, name = values(), "controlplane.metrics.tasks.sum_up_records"

    def fail() -> int:
        raise RuntimeError("the store is full")

    sum_up_records.apply()
    monkeypatch.setattr(record_sums, "sum_up", fail)
    sum_up_records.apply()
    counted = new_values(before, "headgate_celery_task_duration_seconds_count")
    assert counted == {("failed", name): 1, ("ok", name): 1}


def test_a_question_to_kafka_that_fails_is_counted() -> None:
    before = values()
    with pytest.raises(kafka.KafkaProblem):
        kafka.topic_names({"bootstrap.servers": "127.0.0.1:25"})
    assert new_values(before, "headgate_kafka_request_duration_seconds_count") == {("failed", "topic_names"): 1}


# Several processes.

_WORKER = """
import os, sys
sys.argv = ["celery", "worker"]
import controlplane.config
from controlplane.common.measures import CELERY_TASKS_SENT, process_registry
CELERY_TASKS_SENT.labels("job").inc()
for _ in range(2):
    child = os.fork()
    if not child:
        CELERY_TASKS_SENT.labels("job").inc(10)
        os._exit(0)
    os.waitpid(child, 0)
samples = [s for m in process_registry().collect() for s in m.samples]
found = [s.value for s in samples if s.name == "headgate_celery_tasks_sent_total"]
print(os.environ.get("PROMETHEUS_MULTIPROC_DIR", "none"), found)
"""


def run(script: str, **environment: str) -> str:
    started = {**os.environ, "HEADGATE_METRICS_TOKEN": SITE_TOKEN, **environment}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=started, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.usefixtures("db")
def test_a_worker_tells_what_its_children_have_done_and_leaves_no_files() -> None:
    """Children that each keep their own count are a known fault: Prometheus sees one of them, and rates that jump."""
    folder, counted = run(_WORKER, HEADGATE_METRICS_PORT="9100").split(" ", 1)
    assert counted == "[21.0]"
    assert not Path(folder).exists()
    assert run(_WORKER, HEADGATE_METRICS_PORT="0") == "none [1.0]", "who tells nobody writes no files"


@pytest.mark.usefixtures("db")
def test_web_processes_that_share_a_port_share_a_folder(tmp_path: Path) -> None:
    script = _WORKER.replace('sys.argv = ["celery", "worker"]', "")
    for expected in ("[21.0]", "[42.0]"):
        assert run(script, PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) == f"{tmp_path} {expected}"
    assert list(tmp_path.iterdir()), "a folder that was given is whoever's gave it"


# The port.


@pytest.fixture
def port(settings: LazySettings) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        settings.METRICS_PORT = free.getsockname()[1]
    settings.METRICS_TOKEN = SITE_TOKEN
    server = metrics_port.open_port()
    assert server is not None
    yield f"http://127.0.0.1:{settings.METRICS_PORT}"
    server.shutdown()
    server.server_close()


def ask(url: str, method: str = "GET", **headers: str) -> httpx2.Response:
    return httpx2.request(method, url, headers=headers, timeout=20.0, trust_env=False)


def test_the_port_of_a_worker_answers_who_has_the_token(port: str) -> None:
    for shown in ({}, {"Authorization": "Bearer wrong"}):
        refused = ask(f"{port}/metrics", **shown)
        assert (refused.status_code, "token" in refused.text) == (401, True)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    for accept in ("text/plain", OPEN_METRICS):
        answer = ask(f"{port}/metrics", Accept=accept, **SITE)
        found = {name for name, _ in read_page(answer.content, answer.headers["Content-Type"])}
        assert "process_cpu_seconds_total" in found
        assert not [name for name in found if name.startswith(("headgate_supervisor", "headgate_datasource"))]
        assert answer.headers["Cache-Control"] == "no-store"


def test_the_port_of_a_worker_knows_http(port: str) -> None:
    head = ask(f"{port}/metrics", "HEAD", **SITE)
    assert (head.status_code, head.content) == (200, b"")
    packed = ask(f"{port}/metrics", **SITE, **{"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert [ask(f"{port}/{path}", **SITE).status_code for path in ("", "admin", "metrics/")] == [404, 404, 200]
    assert ask(f"{port}/metrics", "POST", **SITE).status_code == 405


def test_a_port_that_is_taken_keeps_no_job_from_running(
    port: str, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    assert metrics_port.open_port() is None
    assert f"port {settings.METRICS_PORT} can't be opened" in caplog.text


def test_without_a_port_none_is_opened(settings: LazySettings) -> None:
    assert settings.METRICS_PORT == 0
    assert metrics_port.open_port() is None
