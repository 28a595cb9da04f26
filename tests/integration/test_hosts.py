"""Several hosts: each task knows on which one it was launched."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from controlplane.common import database
from controlplane.tasks import celery_tasks, host_agent, host_logs, hosts, launcher, residents, services
from controlplane.tasks.logs import add_log_line
from controlplane.tasks.models import Host, Resident, Task
from tests.support.django_cast import Cast, browsing_as
from tests.support.waiting import wait_for


@pytest.fixture
def there(settings: Any, tmp_path: Path) -> Any:
    """This process is a host of this name, with a folder of its own."""
    settings.HOST_NAME, settings.TASK_DIR = "ingest-2.example.org", tmp_path
    return settings


def test_a_task_says_on_which_host_it_was_launched(cast: Cast, there: Any, clients: dict[str, Client]) -> None:
    repair = services.create_repair(like=cast.task, holes=[], topic_id="topic-id-1")
    viewer = clients["viewer"]
    assert viewer.get(f"/api/v1/tasks/{repair.pk}/").json()["host"] == ""
    pages = browsing_as(cast, "viewer")
    assert b"data-host" not in pages.get(f"/tasks/{repair.pk}/").content
    assert launcher.launch(repair.pk)
    launcher.terminate(repair.pk)
    assert viewer.get(f"/api/v1/tasks/{repair.pk}/").json()["host"] == "ingest-2.example.org"
    assert b"data-host>ingest-2.example.org<" in pages.get(f"/tasks/{repair.pk}/").content


def test_the_compaction_application_says_it_too(cast: Cast, there: Any) -> None:
    resident = residents._claim("compaction", "token")
    assert resident is not None
    assert Resident.objects.get(pk=resident.pk).host == "ingest-2.example.org"
    Resident.objects.update(last_heartbeat_at=timezone.now())
    page = browsing_as(cast, "viewer").get(f"/datasources/{cast.datasource.name}/compaction/")
    assert b"data-host>ingest-2.example.org<" in page.content


@pytest.fixture
def elsewhere(cast: Cast, there: Any, tmp_path: Path) -> Path:
    """Another host, on which the cast's task was launched; a thread there answers. Its folder of tasks."""
    here, folder = there.TASK_DIR, tmp_path / "of-the-other"
    with override_settings(HOST_NAME="ingest-1", TASK_DIR=folder):
        assert hosts.renew()
    Task.objects.filter(pk=cast.task.pk).update(host="ingest-1")
    there.TASK_DIR = here / "own"
    (folder / cast.task.pk).mkdir()
    return folder


@contextmanager
def answering(host: str, folder: Path) -> Iterator[None]:
    """The host's process that answers, in its own environment."""
    code = (
        "import django; django.setup()\n"
        "from controlplane.tasks import host_logs\n"
        "client = host_logs.new_client(); print('answers', flush=True)\n"
        "while True: host_logs.answer_next(client)\n"
    )
    environment = {**os.environ, "HEADGATE_HOST_NAME": host, "HEADGATE_TASK_DIR": str(folder)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"answers\n"
        yield
        process.kill()


def test_a_log_of_another_host_is_read_there(cast: Cast, elsewhere: Path, clients: dict[str, Client]) -> None:
    task, viewer = cast.task.pk, clients["viewer"]
    log = elsewhere / task / "spark.log"
    log.write_bytes(b"".join(b"line %06d WARN <x>\n" % n for n in range(10_000)) + b"\xff end")
    with answering("ingest-1", elsewhere):
        answer = viewer.get(f"/api/v1/tasks/{task}/log/")
        assert answer.status_code == 200
        assert answer.content.decode().startswith("line 00")
        assert answer.content.decode().endswith("line 009999 WARN <x>\n\N{REPLACEMENT CHARACTER} end")
        whole = viewer.get(f"/druid/indexer/v1/task/{task}/log?offset=0").content
        assert whole == log.read_bytes()
        assert viewer.get(f"/druid/indexer/v1/task/{task}/log?offset=-4").content == b" end"
        pages = browsing_as(cast, "viewer")
        assert b"line 009999 WARN &lt;x&gt;" in pages.get(f"/tasks/{task}/").content
        found = pages.get(f"/tasks/{task}/log/?log_text=000007&log_level=WARN").content
        assert b'data-log-found="1"' in found
        add_log_line(task, "a line from here")
        wait_for("the line is there", lambda: log.read_bytes().endswith(b"INFO a line from here\n"))
        assert not (elsewhere.parent / "own" / task).exists()


def test_without_an_answer_nobody_is_shown_an_empty_log(
    cast: Cast, elsewhere: Path, clients: dict[str, Client]
) -> None:
    for path in (f"/api/v1/tasks/{cast.task.pk}/log/", f"/druid/indexer/v1/task/{cast.task.pk}/log"):
        answer = clients["viewer"].get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
        assert "on host ingest-1, which does not answer" in answer.content.decode()
    Host.objects.update(seen_at=timezone.now() - timedelta(hours=1))  # then it is not waited for
    page = browsing_as(cast, "viewer").get(f"/tasks/{cast.task.pk}/")
    assert page.status_code == 200
    assert b"data-log-problem>The task&#x27;s log is on host ingest-1, which does not answer." in page.content


def test_an_ask_reads_logs_only(cast: Cast, elsewhere: Path) -> None:
    (elsewhere / "spark.log").write_text("secret")
    (elsewhere.parent / "spark.log").write_text("secret")
    with answering("ingest-1", elsewhere):
        for name in ("..", "", ".", f"{cast.task.pk}/..", "../of-the-other"):
            assert host_logs.read("ingest-1", name, 0, 100) == (0, b"")
            host_logs.append("ingest-1", name, "more")
        assert host_logs.read("ingest-1", cast.task.pk, 0, 100) == (0, b"")
    assert {(elsewhere / "spark.log").read_text(), (elsewhere.parent / "spark.log").read_text()} == {"secret"}


def test_who_shares_the_folder_reads_the_file(cast: Cast, elsewhere: Path, clients: dict[str, Client]) -> None:
    (elsewhere / cast.task.pk / "spark.log").write_text("it is here")
    with override_settings(TASK_DIR=elsewhere):
        assert clients["viewer"].get(f"/api/v1/tasks/{cast.task.pk}/log/").content == b"it is here"


def test_two_hosts_of_one_name_are_refused(cast: Cast, there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts.claim()
    hosts.claim()  # another worker of the same host
    mine = Host.objects.get()

    def renewed_meanwhile(_: float) -> None:
        Host.objects.update(seen_at=timezone.now())

    with override_settings(TASK_DIR=there.TASK_DIR / "another"), monkeypatch.context() as patch:
        patch.setattr(hosts.time, "sleep", renewed_meanwhile)
        with pytest.raises(hosts.NameTaken, match="Another host is called"):
            hosts.claim()
        with pytest.raises(SystemExit, match="Set HEADGATE_HOST_NAME"):
            host_agent.claim_name()
    assert Host.objects.get().identity == mine.identity
    hosts.release()
    with override_settings(TASK_DIR=there.TASK_DIR / "another"):
        hosts.claim()
    assert Host.objects.get().identity != mine.identity


def test_a_host_that_cannot_start_a_task_gives_it_to_another(
    cast: Cast, there: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 46 of the failure matrix: it fails at once, so the tasks of others would come to it, too."""
    hosts.claim()
    with override_settings(HOST_NAME="ingest-3.example.org", TASK_DIR=there.TASK_DIR / "another"):
        hosts.claim()
    again: list[Any] = []
    monkeypatch.setattr(celery_tasks.launch, "apply_async", lambda args, countdown: again.append(args))
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(launcher, "_start_process", full)
    task = services.create_repair(like=cast.task, holes=[], topic_id="topic-id-1")
    assert not celery_tasks.launch(task.pk)
    task.refresh_from_db()
    assert (task.status, task.launched_at, again) == ("PENDING", None, [(task.pk,)])
    assert "ingest-2.example.org could not start it: [Errno 28]" in task.message
    there.HOST_NAME = "ingest-3.example.org"
    celery_tasks.launch(task.pk)
    task.refresh_from_db()
    assert (task.status, len(again)) == ("FAILED", 1)
    assert "on host ingest-3.example.org: [Errno 28] No space left on device" in task.error


def test_what_another_host_has_claimed_meanwhile_stays_its_own(
    cast: Cast, there: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with override_settings(HOST_NAME="ingest-3.example.org", TASK_DIR=there.TASK_DIR / "another"):
        hosts.claim()
    hosts.claim()
    task = services.create_repair(like=cast.task, holes=[], topic_id="topic-id-1")

    def too_late(_: str) -> None:
        Task.objects.filter(pk=task.pk).update(launched_at=timezone.now(), host="ingest-3.example.org")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(launcher, "_claimed", too_late)
    with pytest.raises(launcher.GivenBack):
        launcher.launch(task.pk)
    task.refresh_from_db()
    assert (task.host, task.message) == ("ingest-3.example.org", "")
    assert task.launched_at is not None


@pytest.mark.parametrize(("seconds", "said"), [(41, "41 s ahead of PostgreSQL's"), (-41, "41 s behind PostgreSQL's")])
def test_by_a_wrong_clock_no_host_judges_tasks(
    cast: Cast, there: Any, monkeypatch: pytest.MonkeyPatch, seconds: int, said: str
) -> None:
    """Row 29 of the failure matrix: a worker does not start, one that runs ends, and web is not ready."""
    hosts.claim()
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: signals.append(number))
    monkeypatch.setattr(database, "_now", lambda: datetime.now(UTC) + timedelta(seconds=seconds))
    with pytest.raises(SystemExit, match=said):
        host_agent.claim_name()
    host_agent._round()
    assert signals == [signal.SIGTERM]
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert said in answer.json()["checks"]["database"]


def test_the_name_of_a_worker_that_was_killed_is_free_after_its_lease(cast: Cast, there: Any) -> None:
    there.TASK_HEARTBEAT_TIMEOUT = timedelta(seconds=2)
    hosts.claim()
    with override_settings(TASK_DIR=there.TASK_DIR / "another"):
        assert not hosts.renew()
        hosts.claim()
        assert hosts.renew()
    assert not hosts.renew()
