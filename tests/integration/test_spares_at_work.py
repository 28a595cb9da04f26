"""What an application that waited does for which task, and what becomes of the task if it dies at once."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.utils import timezone

from controlplane.publishing.fence import take_epoch
from controlplane.sources.models import Source
from controlplane.tasks import host_rounds, launcher
from controlplane.tasks.models import Goal, Status, Task
from tests.integration.test_spares import batch_spec, gone, here, pending, process_of, ready_spare, says
from tests.support.django_cast import Cast
from tests.support.waiting import wait_for

__all__ = ["here"]  # a fixture of all tests here, too


@pytest.mark.parametrize(
    ("fields", "module"),
    [
        ({"kind": Task.Kind.REPAIR}, "ingestion.task.repair"),
        ({"kind": Task.Kind.REPLAY}, "ingestion.batch.replay"),  # it has no source: its records are of files
        ({"kind": Task.Kind.INDEX_PARALLEL, "spec": batch_spec(), "slots": 2}, "ingestion.spark.batch"),
    ],
    ids=str,
)
def test_one_serves_short_tasks_too(cast: Cast, here: Any, fields: dict[str, Any], module: str) -> None:
    process, task = process_of(ready_spare()), pending(cast, **fields)
    usual, here.BACKFILL_NICENESS = int(process.nice()), 3
    assert launcher.launch(task)
    says(task, f"with {module}\nserves {task}")
    assert import_module(module).main
    served_by = launcher.process_of(task)
    assert served_by is not None and served_by.pid == process.pid
    lower = 0 if fields["kind"] == Task.Kind.INDEX_PARALLEL else 3  # what it reads is new
    wait_for("its priority", lambda: process.nice() == min(19, usual + lower))


def test_a_replay_of_a_topic_is_served_by_its_own_module(cast: Cast, here: Any) -> None:
    source = Source.objects.create(
        datasource=cast.datasource, kind="offsets", cluster_id="c", topic="t", topic_id="i", group="g"
    )
    ready_spare()
    task = pending(cast, kind=Task.Kind.REPLAY, replay_source=source)
    assert launcher.launch(task)
    says(task, f"with ingestion.task.replay\nserves {task}")


@pytest.fixture
def served(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> str:
    """A task whose spare has its order, and was killed then, a while ago."""
    process, task = process_of(ready_spare()), pending(cast)
    assert launcher.launch(task)
    says(task, f"serves {task}")
    process.kill()
    gone(process)
    Task.objects.filter(pk=task).update(launched_at=timezone.now() - timedelta(seconds=10))
    monkeypatch.setattr(host_rounds, "launch_on_commit", lambda task: launcher.launch(task.pk))
    return task


def test_a_spare_that_dies_before_it_begins_costs_no_task(served: str) -> None:
    """Once: the next application is the task's own, and if that dies too, the task has failed."""
    host_rounds.fail_dead()
    says(served, "started for a task")
    task = Task.objects.get(pk=served)
    assert task.status == Status.PENDING and task.launched_at is not None
    process = launcher.process_of(served)
    assert process is not None
    process.kill()
    gone(process)
    Task.objects.filter(pk=served).update(launched_at=timezone.now() - timedelta(seconds=10))
    host_rounds.fail_dead()
    assert Task.objects.get(pk=served).status == Status.FAILED


@pytest.mark.parametrize("what", ["heartbeat", "epoch", "stop", "produces"])
def test_one_that_may_have_done_something_costs_it(cast: Cast, served: str, what: str) -> None:
    tasks = Task.objects.filter(pk=served)
    if what == "heartbeat":
        tasks.update(status=Status.RUNNING, last_heartbeat_at=timezone.now() - timedelta(seconds=10))
    elif what == "epoch":
        take_epoch(task_id=served, number=0, datasource=cast.datasource, source=cast.source)
    elif what == "stop":
        tasks.update(goal=Goal.STOP)
    else:
        tasks.update(kind=Task.Kind.REPLAY, replay_mode=Task.Replay.PRODUCE)
    host_rounds.fail_dead()
    assert tasks.get().status == Status.FAILED
