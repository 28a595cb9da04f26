"""The applications of what reads old records leave busy processors to those that read current ones."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from controlplane.sources.spec_sources import FILL_MARK
from controlplane.tasks import launcher, services
from controlplane.tasks.models import Status, Task
from tests.support.django_cast import Cast
from tests.support.waiting import wait_for

# As spark-submit: a process that starts another one and waits.
PARENT = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', 'import time; time.sleep(60)'])"


@pytest.fixture
def ours(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The priority of the process that launches: 0 or more."""
    settings.TASK_DIR = tmp_path
    monkeypatch.setattr(launcher, "_spark_command", lambda task: [sys.executable, "-c", PARENT])
    yield os.getpriority(os.PRIO_PROCESS, 0)
    for task in Task.objects.all():
        launcher.terminate(task.pk, signal.SIGKILL)


def priorities(task_id: str) -> set[int]:
    """Of a launched application, and of the process that it starts."""
    assert launcher.launch(task_id)
    process = launcher.process_of(task_id)
    assert process is not None
    wait_for("it starts another process", process.children)
    return {int(one.nice()) for one in (process, *process.children())}


def of_supervisor(cast: Cast, supervisor: str) -> str:
    Task.objects.filter(pk=cast.task.pk).update(supervisor_id=supervisor, status=Status.PENDING, launched_at=None)
    return cast.task.pk


@pytest.mark.parametrize(("niceness", "lower"), [(10, 10), (3, 3), (0, 0)])
def test_those_of_a_backfill_have_a_lower_priority(
    cast: Cast, ours: int, settings: Any, niceness: int, lower: int
) -> None:
    settings.BACKFILL_NICENESS = niceness
    assert priorities(of_supervisor(cast, f"orders{FILL_MARK}1")) == {min(19, ours + lower)}


def test_those_of_its_supervisor_have_not(cast: Cast, ours: int) -> None:
    assert priorities(of_supervisor(cast, "orders")) == {ours}


def test_a_repair_has_it_too(cast: Cast, ours: int) -> None:
    repair = services.create_repair(like=cast.task, holes=[], topic_id="topic-id-1")
    assert launcher.launch(repair.pk)
    process = launcher.process_of(repair.pk)
    assert isinstance(process, psutil.Process) and process.nice() == min(19, ours + 10)
