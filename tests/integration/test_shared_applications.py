"""Tasks that share an application: handed over once each, found dead together, ended one by one.

The process that takes them is a real one, with the data plane's own way to take orders; only Spark is left out.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from celery.signals import worker_shutting_down
from django.test import Client
from django.utils import timezone

from controlplane.common import applications
from controlplane.datasources.models import Datasource
from controlplane.tasks import host_rounds, launcher, lifecycle, shared_applications, spare_rounds, spares
from controlplane.tasks.models import Status, Task
from ingestion.specs.messages.spare import TASKS, SpareOrder
from tests.integration.test_supervisor_services import side_by_side
from tests.support.django_cast import Cast, browsing_as
from tests.support.house import lives
from tests.support.waiting import wait_for

# What the shared application does, and what one does that was started for one task, both without Spark.
PROGRAM = """
import os, pathlib, sys, time
from ingestion.spark.orders import Orders
place = os.environ.get("HEADGATE_SPARE")
print("started", "for many" if place else "for " + os.environ["HEADGATE_TASK_ID"], flush=True)
if not place:
    time.sleep(600)
orders, close = Orders(pathlib.Path(place)), pathlib.Path(place) / "close"
while True:
    for order in orders.take(0.1):
        print("serves", order.task_id, order.token, flush=True)
    if close.exists() and orders.close():
        print("closed", flush=True)
        close.unlink()
"""


@pytest.fixture(autouse=True)
def here(cast: Cast, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    settings.HOST_NAME, settings.TASK_DIR, settings.SPARE_APPLICATIONS = "ingest-2", tmp_path / "tasks", 0
    monkeypatch.setenv("HEADGATE_HOST_NAME", "ingest-2")
    monkeypatch.setattr(launcher, "_submit_command", lambda *_: [sys.executable, "-c", PROGRAM])
    Task.objects.update(launched_at=timezone.now() - timedelta(minutes=5), last_heartbeat_at=timezone.now())
    yield settings
    for _, identity in applications.running_applications(settings.TASK_DIR):
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(identity.pid, signal.SIGKILL)


def pending(cast: Cast, name: str, **fields: Any) -> str:
    values = {"kind": cast.task.kind, "spec": cast.task.spec, "slots": 32, "shares_application": True, **fields}
    values = {"datasource": cast.datasource, **values}
    Task.objects.create(pk=name, created_at=timezone.now(), **values)
    return name


def started(cast: Cast) -> Path:
    """The folder of the one that takes tasks."""
    launcher.launch(pending(cast, "first"))
    [folder] = wait_for("it takes orders", lambda: [f for f in shared_applications.folders() if spares.is_ready(f)])
    return folder


def launched(cast: Cast, *names: str) -> None:
    for name in names:
        if not Task.objects.filter(pk=name).exists():
            pending(cast, name)
        assert launcher.launch(name), name


def log_of(task: str) -> str:
    return launcher.log_of(task).read_text()


def serves(task: str) -> None:
    wait_for(f"it serves {task}", lambda: f"serves {task} " in log_of(task), explain=lambda: log_of(task))


def pid_of(folder: Path) -> int:
    identity = applications.process_in(folder)
    assert identity is not None
    return identity.pid


def gone(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        wait_for("it is gone", lambda: not lives(process))


def test_tasks_of_a_team_share_one_process(cast: Cast) -> None:
    folder = started(cast)
    launched(cast, "first", "second", "third")
    for task in ("first", "second", "third"):
        serves(task)
        process = launcher.process_of(task)
        assert process is not None and process.pid == pid_of(folder)
        assert log_of(task).startswith("started for many")
    assert sorted(shared_applications.tasks_in(folder)) == ["first", "second", "third"]
    token = log_of("second").partition("serves second ")[2].split()[0]
    assert lifecycle.token_hash(token) == lifecycle.token_and_status("second")[0]
    process = psutil.Process(pid_of(folder))
    assert token not in " ".join(process.cmdline()) and token not in process.environ().values()
    assert not any(token in f.read_text() for f in folder.rglob("*") if f.is_file() and f.name != "spark.log")


def test_a_task_waits_while_it_starts_and_no_second_one_is_started(cast: Cast) -> None:
    for name in ("first", "second"):
        assert not launcher.launch(pending(cast, name))
    assert len(shared_applications.folders()) == 1
    assert Task.objects.get(pk="first").launched_at is None
    wait_for("it takes orders", lambda: spares.is_ready(shared_applications.folders()[0]))
    launcher.launch_sharing()  # the host's next round
    for task in ("first", "second"):
        serves(task)


def test_none_is_started_for_a_task_that_the_pool_has_no_place_for(cast: Cast, here: Any) -> None:
    """It would end unused after a minute, and the next round would start another one."""
    here.WORKER_CAPACITY = 1  # which the cast's task has
    assert not launcher.launch(pending(cast, "first"))
    Task.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    launcher.launch_sharing()
    assert shared_applications.folders() == []
    lifecycle.end_task(cast.task)
    launcher.launch_sharing()
    assert len(shared_applications.folders()) == 1


def test_launchers_side_by_side_hand_each_task_over_once(cast: Cast) -> None:
    folder, team = started(cast), cast.datasource.team_id
    tasks = [f"t{n}" for n in range(6)]
    names, taken = iter(tasks), []

    def hand_over() -> None:
        name = next(names)
        with shared_applications.turn(team):
            taken.append(
                shared_applications.hand_over(folder, launcher.folder_of(name), SpareOrder(task_id=name, token="t"))
            )

    side_by_side(hand_over, len(tasks))
    assert taken == [True] * len(tasks)
    for task in tasks:
        serves(task)
        assert log_of("t0").count(f"serves {task} ") == 1


def test_a_child_that_was_forked_meanwhile_keeps_nobody_waiting(here: Any) -> None:
    """A worker starts its own processes at any time."""
    with shared_applications.turn(1):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: shared_applications.turn(1).__enter__()).result(10)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_to_kill_one_task_leaves_the_others_alone(cast: Cast) -> None:
    folder = started(cast)
    launched(cast, "first", "second")
    serves("second")
    assert not launcher.terminate("first")
    launcher.kill("first")
    assert psutil.Process(pid_of(folder)).status() != psutil.STATUS_ZOMBIE
    assert not launcher.has_process("first")  # so nobody looks at it any more
    assert launcher.process_of("second") is not None


def test_the_host_lets_go_of_those_that_have_ended(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = started(cast)
    launched(cast, "first", "second")
    lifecycle.end_task(Task.objects.get(pk="first"))
    monkeypatch.setattr(host_rounds, "_unowned_since", {})
    running = [name for name, _ in applications.running_applications(launcher.settings.TASK_DIR)]
    assert set(running) == {"first", "second", f"{spares.SPARES}/{folder.name}"}
    assert host_rounds.kill_unowned(running, 0.0) == []
    assert host_rounds.kill_unowned(running, 11.0) == ["first"]
    assert launcher.process_of("second") is not None


def test_all_tasks_fail_with_the_process_and_keep_its_log(cast: Cast) -> None:
    folder = started(cast)
    launched(cast, "first", "second")
    serves("second")
    Task.objects.filter(pk__in=["first", "second"]).update(launched_at=timezone.now() - timedelta(minutes=1))
    os.killpg(pid_of(folder), signal.SIGKILL)
    gone(pid_of(folder))
    host_rounds.fail_dead()
    assert set(Task.objects.filter(pk__in=["first", "second"]).values_list("status", flat=True)) == {Status.FAILED}
    shared_applications.sweep()
    assert not folder.exists()
    assert "serves second" in log_of("first")
    assert not launcher.launch(pending(cast, "third"))  # another one starts
    assert len(shared_applications.folders()) == 1


def test_a_task_that_it_has_left_fails_alone(cast: Cast) -> None:
    """One that got no assignment, for example: nobody can say so where the control plane does not answer."""
    folder = started(cast)
    launched(cast, "first", "second")
    serves("second")
    Task.objects.filter(pk__in=["first", "second"]).update(launched_at=timezone.now() - timedelta(minutes=1))
    (folder / TASKS / "first").unlink()  # as the application does at a task's end
    host_rounds.fail_dead()
    assert Task.objects.get(pk="first").status == Status.FAILED
    assert Task.objects.get(pk="second").status == Status.PENDING


def test_those_that_stop_the_host_interrupt_its_tasks(cast: Cast, here: Any) -> None:
    """They have not failed: that is what a stopped stack says of every task."""
    folder = started(cast)
    launched(cast, "first")
    serves("first")
    Task.objects.filter(pk="first").update(launched_at=timezone.now() - timedelta(minutes=1), supervisor_id="s")
    assert "first" in applications.stop_applications(here.TASK_DIR, 5)
    gone(pid_of(folder))
    host_rounds.fail_dead()
    assert Task.objects.get(pk="first").status == Status.SUCCESS


def test_a_worker_that_ends_launches_no_more(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops its host's applications meanwhile would miss the one that is started last."""
    monkeypatch.setattr(host_rounds, "_worker_ends", False)
    monkeypatch.setattr(spare_rounds, "_not_before", 0.0)  # it hears the signal, too
    pending(cast, "first")
    Task.objects.filter(pk="first").update(created_at=timezone.now() - timedelta(minutes=1))
    worker_shutting_down.send(sender=None)
    host_rounds.run()
    assert shared_applications.folders() == []


def test_one_that_has_closed_takes_no_more(cast: Cast) -> None:
    folder = started(cast)
    launched(cast, "first")
    serves("first")
    (folder / "close").touch()
    wait_for("it has closed", lambda: "closed" in log_of("first"))
    assert not launcher.launch(pending(cast, "second"))
    assert len(shared_applications.folders()) == 2
    assert psutil.pid_exists(pid_of(folder))


def test_one_that_closes_at_this_moment_takes_none_and_the_task_waits(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and the order: the task is claimed by then, and must not stay so."""
    folder, hand_over = started(cast), shared_applications.hand_over

    def close_before(*args: Any) -> bool:
        (folder / "close").touch()
        wait_for("it has closed", lambda: "closed" in (folder / "spark.log").read_text())
        return hand_over(*args)

    monkeypatch.setattr(shared_applications, "hand_over", close_before)
    assert not launcher.launch("first")
    task = Task.objects.get(pk="first")
    assert (task.launched_at, task.token_hash) == (None, "")
    assert shared_applications.tasks_in(folder) == []


def test_each_team_has_its_own(cast: Cast) -> None:
    started(cast)
    beta = Datasource.objects.exclude(team=cast.datasource.team).first()
    if beta is None:
        team = cast.users["outsider"].memberships.get().team
        beta = Datasource.objects.create(name="beta-data", team=team)
    assert not launcher.launch(pending(cast, "theirs", datasource=beta))
    assert len(shared_applications.folders()) == 2
    assert len(shared_applications.folders(beta.team_id)) == 1


def test_a_full_one_is_left_and_another_started(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_applications, "MOST_TASKS", 2)
    folder = started(cast)
    launched(cast, "first", "second")
    assert not launcher.launch(pending(cast, "third"))
    assert len(shared_applications.folders()) == 2
    (folder / TASKS / "first").unlink()  # as the application does at a task's end
    assert launcher.launch("third")


def test_other_settings_or_code_mean_another_one(cast: Cast, here: Any) -> None:
    started(cast)
    here.INTERNAL_URL = "http://127.0.0.1:9000"
    assert not launcher.launch("first")
    assert len(shared_applications.folders()) == 2


def test_one_that_hangs_is_killed_with_all_its_tasks(cast: Cast) -> None:
    folder = started(cast)
    launched(cast, "first")
    serves("first")
    process = psutil.Process(pid_of(folder))
    process.suspend()
    wait_for("it stands still", lambda: process.status() == psutil.STATUS_STOPPED)
    os.utime(folder / "spare.json", (time.time() - 20,) * 2)
    assert not launcher.launch(pending(cast, "second"))  # it takes nothing
    shared_applications.sweep()
    assert process.status() == psutil.STATUS_STOPPED
    os.utime(folder / "spare.json", (time.time() - 61,) * 2)
    shared_applications.sweep()
    gone(process.pid)


def test_a_task_says_which_application_it_shares(cast: Cast, clients: dict[str, Client]) -> None:
    folder = started(cast)
    pages, api = browsing_as(cast, "viewer"), clients["viewer"]
    assert b"data-shared-application" not in pages.get("/tasks/first/").content
    assert api.get("/api/v1/tasks/first/").json()["shared_application"] == ""
    launched(cast, "first", "second")
    for name in ("first", "second"):
        assert f"data-shared-application>{folder.name}<".encode() in pages.get(f"/tasks/{name}/").content
        assert api.get(f"/api/v1/tasks/{name}/").json()["shared_application"] == folder.name


def test_where_none_can_start_a_task_has_its_own(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    command = launcher._submit_command
    monkeypatch.setattr(launcher, "_submit_command", lambda *_: [sys.executable, "-c", "raise SystemExit('no Java')"])
    assert not launcher.launch(pending(cast, "first"))
    [folder] = shared_applications.folders()
    gone(pid_of(folder))
    shared_applications.sweep()
    assert "no Java" in caplog.text
    monkeypatch.setattr(launcher, "_submit_command", command)
    assert launcher.launch("first")
    wait_for("it runs alone", lambda: "started for first" in log_of("first"))
    alone = Task.objects.get(pk="first")
    assert (alone.shares_application, alone.shared_application) == (False, "")
    assert shared_applications.folders() == []


def test_spares_and_shared_ones_leave_each_other_alone(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = started(cast)
    spare_rounds.run(1_000.0)
    assert psutil.pid_exists(pid_of(folder)) and spares.is_ready(folder)
    assert spares.waiting() == []


def test_one_that_is_just_being_started_is_no_rubbish(cast: Cast) -> None:
    name = shared_applications.new_name(cast.datasource.team_id)
    shared_applications.prepare(launcher.folder_of(name), "v")
    shared_applications.sweep()
    assert launcher.folder_of(name).exists()
