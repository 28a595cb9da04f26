"""What Druid reports of a supervisor: its lag, how far each of its tasks is, and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Min
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.progress import PartitionProgress
from controlplane.publishing.selectors.published import first_published, rates
from controlplane.publishing.selectors.totals import Totals
from controlplane.sources.models import Source
from controlplane.supervisors.lag import LagNow, active_children, lag_now, source_read
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import current_tasks
from controlplane.tasks.models import Goal, Task
from controlplane.tasks.selectors import task_totals
from controlplane.tasks.watching import stop_timeout


@dataclass(frozen=True)
class TaskProgress:
    """Offsets by partition."""

    task: Task
    publishing: bool
    starting: dict[int, int]  # where the task's first publish began, or is to
    current: dict[int, int]  # where what is published ends
    remaining_s: int | None  # until it stops reading, or is ended if it has not published; None: not known


@dataclass(frozen=True)
class StatusReport:
    """What Druid's status report of a supervisor is made of."""

    partitions: int  # of the topic
    task_duration: timedelta | None  # None where tasks read for as long as they can
    tasks: list[TaskProgress]
    lag: LagNow
    topic: str = ""  # of the partitions' numbers; empty of a pattern
    topics: tuple[StatusReport, ...] = ()  # of a pattern's topics


def status_report(supervisor: Supervisor) -> StatusReport:
    """See ``StatusReport``."""
    if supervisor.io_config.topicPattern is not None:
        each = tuple(status_report(child) for child in active_children(supervisor))
        number, duration = sum(r.partitions for r in each), supervisor.io_config.taskDuration
        return StatusReport(number, duration, [], lag_now(supervisor), topics=each)
    lag, source = lag_now(supervisor), source_read(supervisor)
    tasks = current_tasks(supervisor)
    began = _began_to_read(tasks)
    return StatusReport(
        partitions=len(lag.partitions) if supervisor.partitions is None else supervisor.partitions,
        task_duration=supervisor.io_config.taskDuration,
        tasks=[_task_progress(t, began.get(t.replica_group or t.pk), source, lag.partitions) for t in tasks],
        lag=lag,
        topic=supervisor.io_config.topic,
    )


def _began_to_read(tasks: list[Task]) -> dict[str, datetime]:
    """Since when, by replica group or task: a replica has read for as long as the first of its group has."""
    groups = {t.pk: t.replica_group or t.pk for t in tasks}
    fences = IndexerFence.objects.filter(task_id__in=groups, started_at__isnull=False)
    first_reads: dict[str, datetime] = {}
    for task_id, first in fences.values_list("task_id").annotate(first=Min("started_at")).order_by():
        group = groups[task_id]
        first_reads[group] = min(first, first_reads.get(group, first))
    return first_reads


def _task_progress(
    task: Task, began: datetime | None, source: Source | None, partitions: list[PartitionProgress]
) -> TaskProgress:
    published = first_published(source, task.pk, task.created_at) if source else {}
    stored = {p.partition: p.next_offset for p in partitions if p.next_offset is not None}
    settled = {p.partition: p.settled_upto for p in partitions if p.settled_upto is not None}
    return TaskProgress(
        task=task,
        publishing=task.goal != Goal.RUN,
        starting={**stored, **published},
        current=stored or settled,
        remaining_s=_remaining_s(task, began),
    )


def _remaining_s(task: Task, began: datetime | None) -> int | None:
    limit = task.io_config.taskDuration
    if task.goal != Goal.RUN:
        limit = stop_timeout(task)
        stop_asked_at = task.observation.get("told_at")
        began = datetime.fromisoformat(stop_asked_at) if stop_asked_at else timezone.now()
    if limit is None or began is None:
        return None
    return max(0, int((began + limit - timezone.now()).total_seconds()))


@dataclass(frozen=True)
class TaskStats:
    """What a running task did, in all and lately."""

    task: str
    totals: Totals
    averages: dict[str, dict[str, float]]  # by window (1m, 5m, 15m) each counter per second


def task_stats(supervisor: Supervisor) -> list[TaskStats]:
    """What its tasks that have not ended did so far."""
    tasks = current_tasks(supervisor)
    averages = rates([t.pk for t in tasks])
    return [TaskStats(t.pk, task_totals(t), averages[t.pk]) for t in tasks]
