"""Replays of records of files: whose spec reads them again, and what such a task is told and says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from controlplane.common.errors import Conflict
from controlplane.segments.kept_files import publish_kept
from controlplane.tasks.batches import assignment, spec_of
from controlplane.tasks.models import Task
from ingestion.specs import SpecError
from ingestion.specs.batch import parse_batch_spec
from ingestion.specs.batch_protocol import BatchAssignment
from ingestion.specs.input_source import DruidInputSource
from ingestion.specs.metrics import BY_TIME
from ingestion.specs.replays import KeptPublishAnswer, KeptPublishRequest


@dataclass(frozen=True)
class FileReader:
    """A batch task's spec, by which records of files were read last, and the tasks that did so: the newest first."""

    task: Task
    tasks: tuple[str, ...]

    @property
    def spec(self) -> dict[str, Any]:
        """Canonical, without the task's own id."""
        return {name: value for name, value in self.task.as_batch.items() if name != "id"}

    @property
    def records(self) -> dict[str, Any]:
        """What is so of the records that it can read again, by columns of their own."""
        return {"source": None, "cut": False, "task_id__in": self.tasks}


def readers_of(task_ids: Iterable[str]) -> list[FileReader]:
    """Of the tasks under which records of files are kept: one for those whose specs differ in what they read alone.

    Raises ``Conflict`` when nothing says how to decode.
    """
    wanted = set(task_ids)
    readers: dict[str, FileReader] = {}
    found = Task.objects.filter(pk__in=wanted).select_related("datasource").order_by("-created_at", "-id")
    for task in found:
        key = _reads_as(task)
        known = readers.get(key)
        readers[key] = replace(known, tasks=(*known.tasks, task.pk)) if known else FileReader(task, (task.pk,))
    if not readers:
        raise Conflict("The batch task that has read these records is not known any more: nothing says how to decode.")
    for reader in readers.values():
        _check(reader)
    return list(readers.values())


def _reads_as(task: Task) -> str:
    parts = task.as_batch["spec"]
    io_config = {name: value for name, value in parts["ioConfig"].items() if name != "inputSource"}
    return json.dumps({**parts, "ioConfig": io_config}, sort_keys=True)


def _check(reader: FileReader) -> None:
    try:
        spec = parse_batch_spec(reader.spec).spec
    except SpecError as error:
        raise Conflict(f"The spec of task {reader.task.pk} can't be read any more: {error}.") from None
    by_time = any(metric.how in BY_TIME for metric in spec.dataSchema.metricsSpec)
    if isinstance(spec.ioConfig.inputSource, DruidInputSource) and by_time:
        raise Conflict(
            f"Task {reader.task.pk} has read these records from segments, and its first or last values go by what "
            "only segments say of a row: they can't be ingested alone. Export them, and submit a task."
        )


@transaction.atomic
def start(task: Task) -> BatchAssignment:
    """What such a replay is to do, from here on the process alone that asks."""
    return assignment(task, spec_of(task).spec.for_kept_records)


def publish(task: Task, request: KeptPublishRequest) -> KeptPublishAnswer:
    """Some of what it holds has come to an end. Raises ``PublishRefused``, ``InvalidInput``."""
    return publish_kept(task_id=task.pk, datasource=task.datasource, request=request)
