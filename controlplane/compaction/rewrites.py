"""Intervals that are written anew, by the partitions that a datasource's config says.

One that a Spark task can take has a job of the compaction application; a larger one a ``compact`` task, which is what
an operator could submit, and runs as all batch tasks do. What has been done says of the interval how its rows are dealt
out. Here: whether an interval may be written anew now, how, and that it gets its task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.common.health import Code, Health
from controlplane.common.ids import task_id
from controlplane.compaction.backoff import MAX_FAILURES, Attempt, health_of_attempts
from controlplane.compaction.models import Rewrite
from controlplane.compaction.partitioning import Partitioning
from controlplane.compaction.policy import MAX_INPUTS
from controlplane.compaction.reindexing import batch_spec_for
from controlplane.segments.models import Interval
from controlplane.tasks import residents
from controlplane.tasks.batches import inputs_of
from controlplane.tasks.models import Status, Task
from controlplane.tasks.segment_tasks import create_segment_task
from ingestion.specs.errors import SpecError
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec, parse_compact_task

ISSUED = "coordinator-issued_compact"  # how the ids of Druid's begin


def slots_taken() -> int:
    """How many places of compaction's share such tasks have, or wait for."""
    slots = Task.objects.active().filter(rewrite__isnull=False).aggregate(slots=Sum("slots"))["slots"]
    return int(slots or 0)


def slots_left() -> int:
    """How many more may be given to such tasks; none as long as somebody waits for a place of the pool."""
    return 0 if residents.must_give_way() else residents.slots() - slots_taken()


def is_small(interval: Interval) -> bool:
    """Whether a job can take it."""
    return interval.size_bytes <= settings.COMPACTION_JOB_BYTES and interval.segments <= MAX_INPUTS


def slots_of(partitioning: Partitioning) -> int:
    """How many one of them has: as its config says, within compaction's share."""
    return min(partitioning.subtasks, residents.slots())


def open_task(interval: Interval) -> str | None:
    """The task that is at work on it, or is to be."""
    active = _rewrites_of(interval).filter(task__in=Task.objects.active())
    return active.values_list("task_id", flat=True).first()


def health_if_blocked(interval: Interval, partitioning: Partitioning, now: datetime) -> Health | None:
    """None when a task may write it anew now."""
    if partitioning.max_input_bytes < interval.size_bytes:
        cause = "It is larger than inputSegmentSizeInBytes."
        return Health.of(Code.TOO_LARGE, cause, "Raise inputSegmentSizeInBytes in the config.")
    return health_of_attempts(_attempts(interval), now) or _refusal(interval, partitioning)


def rewrite_spec(interval: Interval, partitioning: Partitioning, segments: Collection[UUID]) -> BatchTaskSpec:
    """What a job is to do with these, which are all that it has. Raises what ``batch_spec_for`` does."""
    return batch_spec_for(_spec(interval, partitioning), segments)


def create_task(interval: Interval, partitioning: Partitioning) -> Task:
    """The task, which waits for its places."""
    name = interval.datasource.name
    spec = _spec(interval, partitioning, {"id": task_id(ISSUED, name, timezone.now())})
    with transaction.atomic():
        task = create_segment_task(interval.datasource, spec, user=None)
        slots = min(task.slots, slots_of(partitioning))
        Task.objects.filter(pk=task.pk).update(slots=slots, indexers_wanted=slots)
        Rewrite.objects.create(
            task=task, datasource=interval.datasource, interval_start=interval.start, interval_end=interval.end
        )
    return task


def _spec(interval: Interval, partitioning: Partitioning, more: dict[str, str] | None = None) -> CompactTaskSpec:
    span = "/".join(f"{t:%Y-%m-%dT%H:%M:%S}.{t.microsecond // 1000:03}Z" for t in (interval.start, interval.end))
    return parse_compact_task(
        {
            "type": "compact",
            "dataSource": interval.datasource.name,
            "ioConfig": {"type": "compact", "inputSpec": {"type": "interval", "interval": span}},
            "tuningConfig": partitioning.tuning,
            **(more or {}),
        }
    )


def _refusal(interval: Interval, partitioning: Partitioning) -> Health | None:
    """What its segments do not allow: a task would fail with it as it starts."""
    try:
        spec = _spec(interval, partitioning)
        batch_spec_for(spec, [s.pk for s in inputs_of(spec.batch_task(None).spec)])
    except InvalidInput as error:
        return _unfit(error.detail)
    except (SpecError, ValueError) as error:
        return _unfit(f"{error}.")
    return None


def _unfit(why: str) -> Health:
    return Health.of(Code.NOT_PARTITIONABLE, f"It can't be partitioned: {why}", "Change partitionsSpec in the config.")


def _attempts(interval: Interval) -> Iterator[Attempt]:
    """The newest first."""
    for rewrite in _rewrites_of(interval).select_related("task").order_by("-task__created_at")[:MAX_FAILURES]:
        task = rewrite.task
        ended = task.ended_at or task.created_at
        yield Attempt(task.status == Status.FAILED, ended, task.error, subject=f"Task {task.pk}")


def _rewrites_of(interval: Interval) -> QuerySet[Rewrite]:
    return Rewrite.objects.filter(
        datasource=interval.datasource_id, interval_start=interval.start, interval_end=interval.end
    )
