"""What an application that waited does for which task, and what becomes of the task if it dies at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from controlplane.sources.models import Source
from controlplane.tasks import launcher
from controlplane.tasks.models import Task
from tests.integration.test_spares import batch_spec, here, pending, process_of, ready_spare, says
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
