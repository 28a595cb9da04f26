"""What each host does for its own processes, and what others do when a host is gone."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.common import applications
from controlplane.config import celery_app
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.tasks import host_rounds, launcher, lifecycle, residents, watching
from controlplane.tasks.models import Host, Resident, Status, Task
from tests.integration.test_supervisor_services import side_by_side
from tests.support.django_cast import Cast
from tests.support.waiting import wait_for

Start = Callable[..., psutil.Process]
NOT_STARTED = "The host that was to start it did not. It starts on another host, or on this one again."


@pytest.fixture
def here(settings: Any, tmp_path: Path) -> Any:
    settings.HOST_NAME, settings.TASK_DIR = "ingest-2", tmp_path
    return settings


@pytest.fixture
def start(cast: Cast, here: Any) -> Iterator[Start]:
    """Starts the process of a task or resident of this name, as the launcher would."""
    started = []

    def begin(name: str) -> psutil.Process:
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
        started.append(process)
        launcher.scratch_of(name).mkdir(parents=True)
        applications.record_process(launcher.folder_of(name), process.pid)
        return psutil.Process(process.pid)

    yield begin
    for process in started:
        process.kill()
        process.wait()


def task_of(cast: Cast, name: str, **fields: Any) -> Task:
    now = timezone.now()
    values = {"kind": "share_group", "status": Status.RUNNING, "created_at": now, "launched_at": now, **fields}
    return Task.objects.create(pk=name, datasource=cast.datasource, spec=cast.task.spec, **values)


def ends(process: psutil.Process) -> None:
    wait_for("the process is killed", lambda: process.status() == psutil.STATUS_ZOMBIE)


def test_what_is_not_this_hosts_any_more_is_killed_after_a_while(cast: Cast, start: Start) -> None:
    """Row 39 of the failure matrix: a driver that slept while another host took its task over."""
    task_of(cast, "own", host="ingest-2")
    task_of(cast, "of-a-version-before", host="")
    task_of(cast, "ended", host="ingest-2", status=Status.FAILED, ended_at=timezone.now())
    task_of(cast, "taken-over", host="ingest-1")
    task_of(cast, "waits-again", host="ingest-2", status=Status.PENDING, launched_at=None)
    Resident.objects.create(pk="merges", slots=1, launched_at=timezone.now(), host="ingest-2", ended_at=timezone.now())
    names = ["own", "of-a-version-before", "ended", "taken-over", "waits-again", "merges", "of-nobody"]
    processes = {name: start(name) for name in names}
    assert host_rounds.kill_unowned(names, 100.0) == []
    assert host_rounds.kill_unowned(names, 109.0) == []
    Task.objects.filter(pk="waits-again").update(launched_at=timezone.now())  # it was started here again
    killed = {"ended", "taken-over", "merges"}
    assert set(host_rounds.kill_unowned(names, 110.0)) == killed
    for name in killed:
        ends(processes[name])
        assert not launcher.scratch_of(name).exists()
    assert {name for name in names if processes[name].status() != psutil.STATUS_ZOMBIE} == {*names} - killed


def test_a_round_finds_the_processes_by_their_files(cast: Cast, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web process does not answer here, so nobody is called dead; what lost its task is killed all the same."""
    task_of(cast, "ended", host="ingest-2", status=Status.FAILED, ended_at=timezone.now())
    process, log = start("ended"), launcher.log_of("ended")
    log.write_bytes(b"a line of the log\n" * 1000)
    monkeypatch.setattr(host_rounds, "KILL_GRACE_S", 0.0)
    monkeypatch.setattr("django.conf.settings.TASK_LOG_BYTES", 1000)
    host_rounds.run()
    ends(process)
    assert log.stat().st_size < 1000


def test_a_dead_process_is_judged_on_its_own_host_only(
    cast: Cast, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    Task.objects.update(launched_at=timezone.now() - timedelta(seconds=60))
    process = start(cast.task.pk)
    process.kill()
    ends(process)
    monkeypatch.setenv("HEADGATE_HOST_NAME", "ingest-1")  # another host that has the same folder
    host_rounds.fail_dead()
    cast.task.refresh_from_db()
    assert cast.task.status == Status.RUNNING
    monkeypatch.delenv("HEADGATE_HOST_NAME")
    host_rounds.fail_dead()
    cast.task.refresh_from_db()
    assert (cast.task.status, cast.task.error[:35]) == (Status.FAILED, "The application's process ended wit")


def gone(name: str, since: timedelta) -> datetime:
    Host.objects.create(name=name, folder="f", identity="i", seen_at=timezone.now() - since)
    return timezone.now() - timedelta(seconds=31)


def test_what_a_dead_host_had_claimed_is_launched_elsewhere(cast: Cast, here: Any, clients: dict[str, Client]) -> None:
    heard_since = gone("ingest-1", timedelta(seconds=31))
    gone("ingest-3", timedelta(seconds=20))
    before = timezone.now() - timedelta(seconds=31)
    claimed = {"status": Status.PENDING, "launched_at": before, "host": "ingest-1", "kind": Task.Kind.REPAIR}
    lost = task_of(cast, "lost", **claimed)
    token = lifecycle.new_token(lost)
    task_of(cast, "fresh", **{**claimed, "launched_at": timezone.now()})
    task_of(cast, "of-a-living-host", **{**claimed, "host": "ingest-3"})
    task_of(cast, "begun", **{**claimed, "last_heartbeat_at": timezone.now()})
    of_gone = watching.of_gone_hosts()
    assert lifecycle.requeue_unstarted(timezone.now(), of_gone) == 0  # heartbeats can be heard since just now
    assert lifecycle.requeue_unstarted(heard_since, of_gone) == 1
    lost.refresh_from_db()
    assert (lost.launched_at, lost.message) == (None, NOT_STARTED)
    answer = Client().post(
        "/internal/tasks/lost/heartbeat",
        '{"indexers": [], "slots": 1}',
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 401  # its driver that comes up late
    assert launcher.launch("lost")
    launcher.terminate("lost")
    assert clients["viewer"].get("/api/v1/tasks/lost/").json()["host"] == "ingest-2"


def test_a_compaction_application_of_a_dead_host_is_not_waited_for(cast: Cast, here: Any) -> None:
    here.TASK_START_TIMEOUT = timedelta(hours=1)
    heard_since = gone("ingest-1", timedelta(seconds=31))
    resident = Resident.objects.create(pk="merges", slots=1, launched_at=heard_since, host="ingest-2")
    assert residents.patience_with(resident) == here.TASK_START_TIMEOUT
    resident.host = "ingest-1"
    assert residents.patience_with(resident) == here.TASK_HEARTBEAT_TIMEOUT


@pytest.mark.django_db(transaction=True)
def test_partitions_for_receipts_may_be_made_twice_at_once(cast: Cast) -> None:
    """Each by one of the two, and none fails."""
    made: list[str] = []
    for week in range(10):
        day = date(2101, 1, 1) + timedelta(weeks=week)
        made += itertools.chain.from_iterable(side_by_side(partial(make_receipt_partitions, day), 2))
    try:
        assert sorted(made) == [f"publishing_receipt_{date(2101, 1, 2) + timedelta(days=n):%Y%m%d}" for n in range(70)]
    finally:
        with connection.cursor() as cursor:
            for name in made:
                cursor.execute(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.django_db(transaction=True)
def test_each_job_of_the_schedule_may_run_twice_at_once(cast: Cast) -> None:
    """Row 39 of the failure matrix. Two beats send each of them twice: none fails, and none starts a task twice."""
    celery_app.loader.import_default_modules()
    cast.task.spec.pop("suspended")  # a supervisor's alone
    cast.task.save()
    before = set(Task.objects.values_list("pk", flat=True))
    jobs = {entry["task"] for entry in celery_app.conf.beat_schedule.values()}
    assert len(jobs) > 20
    for job in sorted(jobs):
        side_by_side(celery_app.tasks[job].run, 2)
    started = list(Task.objects.exclude(pk__in=before).values_list("kind", "supervisor_id"))
    assert sorted(set(started)) == sorted(started)
