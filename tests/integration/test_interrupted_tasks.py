"""What was stopped with the stack or its machine has not failed: it goes on, or a supervisor starts another."""

from __future__ import annotations

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common import applications
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.tasks import host_rounds, launcher, lifecycle
from controlplane.tasks.models import Goal, Status, Task
from ingestion.specs.messages.protocol import EndRequest
from tests.support.django_cast import Cast


@pytest.fixture
def folder(cast: Cast, settings: Any, tmp_path: Path) -> Path:
    """The task's folder; it names a process of this machine that has ended."""
    settings.TASK_DIR = tmp_path
    folder = tmp_path / cast.task.pk
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"]) as process:
        applications.record_process(folder, process.pid)
        process.kill()
    return folder


def by_hand(cast: Cast, **changes: Any) -> Task:
    Task.objects.filter(pk=cast.task.pk).update(supervisor_id="", **changes)
    cast.task.refresh_from_db()
    return cast.task


def end(task: Task, request: EndRequest) -> int:
    """The application's last word, over HTTP; the answer's status."""
    token = lifecycle.new_token(task)
    return _post(task, token, "end", request.model_dump_json())


def _post(task: Task, token: str, what: str, body: str) -> int:
    header = {"Authorization": f"Bearer {token}"}
    answer = Client().post(f"/internal/tasks/{task.pk}/{what}", body, content_type="application/json", headers=header)
    task.refresh_from_db()
    return answer.status_code


def test_a_supervisors_task_has_ended_well(cast: Cast) -> None:
    assert end(cast.task, EndRequest(interrupted=True)) == 200
    assert (cast.task.status, cast.task.error) == (Status.SUCCESS, "")
    assert cast.task.message.startswith("The stack or its machine was shut down")


def test_a_task_by_hand_waits_to_be_launched_again(cast: Cast) -> None:
    task = by_hand(cast)
    assert end(task, EndRequest(interrupted=True)) == 200
    assert (task.status, task.launched_at, task.last_heartbeat_at, task.error) == (Status.PENDING, None, None, "")
    assert task.message.endswith("It continues automatically.")
    assert set(task.indexers.values_list("state", flat=True)) == {"stopped"}


def test_its_old_application_may_say_no_more(cast: Cast) -> None:
    task = by_hand(cast)
    token = lifecycle.new_token(task)
    assert _post(task, token, "end", EndRequest(interrupted=True).model_dump_json()) == 200
    assert _post(task, token, "heartbeat", '{"indexers": [], "slots": 1}') == 401
    assert task.status == Status.PENDING


@pytest.mark.parametrize("goal", [Goal.FINISH, Goal.STOP])
def test_a_task_by_hand_that_was_to_end_has_ended(cast: Cast, goal: Goal) -> None:
    task = by_hand(cast, goal=goal)
    assert end(task, EndRequest(interrupted=True)) == 200
    assert task.status == Status.SUCCESS


def test_a_failure_before_the_stop_is_a_failure(cast: Cast) -> None:
    assert end(cast.task, EndRequest(interrupted=True, error="Access denied.")) == 200
    assert (cast.task.status, cast.task.error) == (Status.FAILED, "Access denied.")


def test_a_repair_ends_and_a_replay_keeps_what_it_holds(cast: Cast) -> None:
    task = by_hand(cast, kind=Task.Kind.REPAIR)
    assert lifecycle.interrupt_task(task, message="Stopped.")
    task.refresh_from_db()
    assert task.status == Status.SUCCESS
    held = QuarantinedRecord.State.REPLAYING
    QuarantinedRecord.objects.update(state=held, replay_id=task.pk)
    Task.objects.update(kind=Task.Kind.REPLAY, status=Status.RUNNING, supervisor_id=cast.supervisor.pk)
    task.refresh_from_db()
    assert lifecycle.interrupt_task(task, message="Stopped.")
    task.refresh_from_db()
    assert task.status == Status.PENDING
    assert set(QuarantinedRecord.objects.values_list("state", flat=True)) == {held}


def test_what_has_ended_stays_as_it_is(cast: Cast) -> None:
    lifecycle.end_task(cast.task, error="It broke.")
    assert not lifecycle.interrupt_task(cast.task, message="Stopped.")
    cast.task.refresh_from_db()
    assert (cast.task.status, cast.task.message) == (Status.FAILED, "")


def test_a_process_that_is_found_dead_was_stopped_if_that_was_noted(cast: Cast, folder: Path) -> None:
    """Killed when its time was over, or too early in its life to have known the signal."""
    shutil.copyfile(folder / "pid", folder / "stopped")
    host_rounds.fail_dead()
    cast.task.refresh_from_db()
    assert (cast.task.status, cast.task.error) == (Status.SUCCESS, "")
    assert "killed before it stopped cleanly" in cast.task.message


def test_a_process_that_is_found_dead_without_a_note_has_failed(cast: Cast, folder: Path) -> None:
    host_rounds.fail_dead()
    cast.task.refresh_from_db()
    assert cast.task.status == Status.FAILED
    assert cast.task.error.startswith("The application's process ended without a report.")


def test_nothing_is_launched_beside_the_last_process(cast: Cast, folder: Path) -> None:
    task = by_hand(cast, status=Status.PENDING, launched_at=None, created_at=timezone.now() - timedelta(days=1))
    with subprocess.Popen(["sleep", "60"]) as process:
        applications.record_process(folder, process.pid)
        assert not launcher.launch(task.pk)
        process.kill()
    task.refresh_from_db()
    assert task.launched_at is None
