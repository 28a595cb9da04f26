"""Replays of records of files: whose spec reads them again, and what such a task is told and says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from controlplane.common.errors import Conflict
from controlplane.datasources.sampling import take_sample
from controlplane.publishing.file_replay_publish import publish_file_replay
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.tasks.batches import assignment, spec_of
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.input_source import DruidInputSource
from ingestion.specs.messages.batch_protocol import BatchAssignment
from ingestion.specs.messages.replays import KeptPublishAnswer, KeptPublishRequest
from ingestion.specs.messages.sampler_spec import SamplerSpec, sampler_of_batch
from ingestion.specs.messages.sampling import KeptRecord, SampleAnswer
from ingestion.specs.schema.metrics import BY_TIME
from ingestion.specs.tasks.batch import BatchTaskSpec


@dataclass(frozen=True)
class FileReader:
    """A batch task's spec, by which records of files were read last, and the tasks that did so: the newest first."""

    task: Task
    read_by: BatchTaskSpec
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
    """Of the tasks under which records of files are kept: one for those whose specs differ alone in where they read.

    Raises ``Conflict`` when nothing says how to decode.
    """
    readers: dict[str, FileReader] = {}
    tasks = Task.objects.filter(pk__in=set(task_ids)).select_related("datasource").order_by("-created_at", "-id")
    for task in tasks:
        spec = _spec_of(task)
        reader = readers.get(spec.spec.reads_as, FileReader(task, spec, ()))
        readers[spec.spec.reads_as] = replace(reader, tasks=(*reader.tasks, task.pk))
    if not readers:
        raise Conflict("The batch task that read these records no longer exists, so there is no spec to decode them.")
    return list(readers.values())


def _spec_of(task: Task) -> BatchTaskSpec:
    try:
        spec = spec_of(task)
    except SpecError as error:
        raise Conflict(f"The spec of task {task.pk} can't be read any more: {error}.") from None
    by_time = any(metric.aggregation in BY_TIME for metric in spec.spec.dataSchema.metricsSpec)
    if isinstance(spec.spec.ioConfig.inputSource, DruidInputSource) and by_time:
        raise Conflict(
            f"Headgate cannot ingest these records alone. Task {task.pk} read them from segments, and its first or "
            "last metrics need data that only the segments have. Export the records, and submit a new task."
        )
    return spec


@transaction.atomic
def start(task: Task) -> BatchAssignment:
    """What such a replay is to do, from here on the process alone that asks."""
    return assignment(task, spec_of(task).spec.for_kept_records)


def publish(task: Task, request: KeptPublishRequest) -> KeptPublishAnswer:
    """Some of what it holds has come to an end. Raises ``PublishRefused``, ``InvalidInput``."""
    return publish_file_replay(task_id=task.pk, request=request)


def sample_of(
    user: User, spec: BatchTaskSpec, records: Sequence[QuarantinedRecord]
) -> tuple[SamplerSpec, SampleAnswer]:
    """In the order of the records. Raises ``NotAllowed``, ``InvalidInput`` with every fault, ``Unavailable``."""
    with_header = spec.spec.ioConfig.has_header
    kept_records = [_to_kept_record(record, with_header) for record in records]
    return take_sample(user=user, document=sampler_of_batch(spec), kept_records=kept_records, bounded=True)


def _to_kept_record(record: QuarantinedRecord, with_header: bool) -> KeptRecord:
    """``with_header``: its columns stand in a line before it, as in its file."""
    payload = bytes(record.payload or b"")
    more: dict[str, Any] = {"key": None, "headers": [], "timestamp_ms": None}
    if with_header and record.file_header:
        payload = bytes(record.file_header) + b"\n" + payload
    return KeptRecord.model_construct(partition=record.partition, offset=record.offset, payload=payload, **more)
