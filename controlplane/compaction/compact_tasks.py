"""Tasks that merge segments: Druid's ``compact``, submitted by hand.

A task is a number of jobs, which the compaction application does as it does all others. A round, every few
seconds, takes the task on from where they are:

1. As long as jobs of it are open, it waits for them. One whose segments had changed is planned anew.
2. Of the segments that were there when it began, those that are not as large as wanted become jobs; what was appended
   since is left to automatic compaction, so that a task ends however much comes in.
3. When nothing is left of them, it has succeeded. It fails when a job fails for good, or more often than ``ATTEMPTS``.

All that is known stands in its jobs' rows: a round that dies in between is done again by the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.common.errors import HeadgateError
from controlplane.compaction.configs import Policy
from controlplane.compaction.models import OPEN, Job, State
from controlplane.compaction.planning import IntervalPlan, Span, make_job, segments_of_each
from controlplane.compaction.policy import LARGE, Choice, Limits, group_all
from controlplane.publishing.models import IndexerFence
from controlplane.segments.models import Interval, Segment
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.logs import add_log_line
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.segment_specs import segment_spec, span_of
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec

ATTEMPTS = 3  # failed jobs, after which it has failed
AT_ONCE = 64  # jobs of a task that are open
READ_AT_ONCE = 200  # intervals whose segments are read at once


@dataclass(frozen=True)
class _Remaining:
    """What is still to be done of a task."""

    merges: Sequence[IntervalPlan] = ()
    has_other_jobs: bool = False  # jobs of others are at work on some of its segments
    found: bool = False  # there are segments
    unknown_schemas: int = 0  # of tasks whose schema is not known any more


def run() -> None:
    """One round over all of them that have not ended."""
    for task in (
        Task.objects.active().filter(kind=Task.Kind.COMPACT).select_related("datasource").order_by("created_at")
    ):
        try:
            _advance(task)
        except HeadgateError as problem:
            _end(task, error=problem.detail)


def _advance(task: Task) -> None:
    spec = segment_spec(task)
    if not isinstance(spec, CompactTaskSpec) or not _ensure_started(task):
        return
    jobs = Job.objects.filter(task=task)
    if task.goal != Goal.RUN and _stop_if_asked(task, jobs):
        return
    _update_totals(task, jobs)
    if jobs.filter(state__in=OPEN).exists():
        return
    failed = jobs.filter(state=State.FAILED).order_by("-ended_at")
    newest = failed.first()
    if task.goal == Goal.RUN and newest is not None and (newest.permanent or failed.count() >= ATTEMPTS):
        _end(task, error=f"A merge failed: {newest.error} {_summary(task, jobs)}")
        return
    remaining = _find_remaining(task, spec) if task.goal == Goal.RUN else _Remaining()
    if remaining.merges:
        _make_jobs(task, spec, remaining)
    elif not remaining.has_other_jobs:
        _conclude(task, jobs, spec, remaining)


def _ensure_started(task: Task) -> bool:
    """A task that waits begins now; False for one that was stopped before."""
    if task.status != Status.PENDING:
        return True
    task.started_at = task.launched_at = timezone.now()
    waiting = Task.objects.filter(pk=task.pk, status=Status.PENDING)
    begun = {"launched_at": task.launched_at, "started_at": task.started_at, "host": settings.HOST_NAME}
    if not waiting.update(status=Status.RUNNING, **begun):
        return False
    task.status = Status.RUNNING
    notify_task_changed(task, urgent=True)
    return True


def _stop_if_asked(task: Task, jobs: QuerySet[Job]) -> bool:
    """With ``finish`` the jobs that run end; else they are given up: an attempt that goes on replaces nothing."""
    given_up = OPEN if task.goal == Goal.STOP else (State.WAITING,)
    now = timezone.now()
    jobs.filter(state__in=given_up).update(
        state=State.FAILED, permanent=True, error="Its task was stopped.", ended_at=now
    )
    if task.goal != Goal.STOP:
        return False
    _update_totals(task, jobs)
    _end(task, error=f"Stopped. {_summary(task, jobs)}".strip())
    return True


def _find_remaining(task: Task, spec: CompactTaskSpec) -> _Remaining:
    start, end = span_of(spec)
    limits = Limits(target_rows=spec.tuningConfig.rows_per_segment)
    present = Interval.objects.filter(datasource=task.datasource, segments__gt=0, start__lt=end, end__gt=start)
    merges: list[IntervalPlan] = []
    unknown = 0
    elsewhere = False
    unfinished = _unfinished_spans(task, (start, end), limits)
    for at in range(0, len(unfinished), READ_AT_ONCE):
        intervals = _intervals(task, unfinished[at : at + READ_AT_ONCE])
        segments, written = segments_of_each(intervals)
        in_jobs = _ids_in_jobs(intervals)
        for interval in intervals:
            mine = [s for s in segments[interval.start, interval.end] if s.created_at < _start_time(task)]
            free = [s for s in mine if s.id not in in_jobs]
            unknown += sum(s.kind is None for s in mine)
            elsewhere = elsewhere or len(free) < len(mine)
            groups = tuple(group_all(free, limits))
            if groups:
                merges.append(IntervalPlan(interval, Choice(groups), written))
            if sum(len(m.choice.groups) for m in merges) >= AT_ONCE:
                return _Remaining(merges, elsewhere, True, unknown)
    return _Remaining(merges, elsewhere, present.exists(), unknown)


def _unfinished_spans(task: Task, span: Span, limits: Limits) -> list[Span]:
    """Its intervals that have segments which may be merged or cut up, by time: what is done costs nothing again."""
    segments = Segment.objects.filter(
        datasource=task.datasource,
        used=True,
        interval_start__lt=span[1],
        interval_end__gt=span[0],
        created_at__lt=_start_time(task),
    )
    small = Q(rows__lt=limits.target_rows * LARGE, size_bytes__lt=limits.target_bytes * LARGE)
    by_interval = segments.values("interval_start", "interval_end").annotate(
        small=Count("pk", filter=small), large=Count("pk", filter=Q(rows__gt=limits.target_rows))
    )
    unfinished = by_interval.filter(Q(small__gt=1) | Q(large__gt=0)).order_by("interval_start", "interval_end")
    return list(unfinished.values_list("interval_start", "interval_end"))


def _intervals(task: Task, spans: Sequence[Span]) -> list[Interval]:
    intervals = Interval.objects.filter(datasource=task.datasource, start__in={start for start, _ in spans})
    span_set = set(spans)
    ordered = intervals.select_related("datasource").order_by("start", "end")
    return [interval for interval in ordered if (interval.start, interval.end) in span_set]


def _start_time(task: Task) -> datetime:
    return task.started_at or task.created_at


def _ids_in_jobs(intervals: Sequence[Interval]) -> set[object]:
    """The segments that open jobs read."""
    open_jobs = Job.objects.filter(
        datasource=intervals[0].datasource_id, interval_start__in={i.start for i in intervals}, state__in=OPEN
    )
    return {i for inputs in open_jobs.values_list("inputs", flat=True) for i in inputs}


@transaction.atomic
def _make_jobs(task: Task, spec: CompactTaskSpec, remaining: _Remaining) -> None:
    policy = Policy(Limits(target_rows=spec.tuningConfig.rows_per_segment), priority=spec.priority)
    index_override = spec.tuningConfig.indexSpec if "indexSpec" in spec.tuningConfig.model_fields_set else None
    index_spec = None if index_override is None else index_override.model_dump(mode="json", exclude_defaults=True)
    for interval_plan in remaining.merges:
        for group in interval_plan.choice.groups:
            make_job(interval_plan, group, policy, task, index_spec)
        many, when = len(interval_plan.choice.groups), f"{interval_plan.interval.start:%Y-%m-%dT%H:%M:%SZ}"
        add_log_line(
            task.pk,
            f"interval {when}: {many} merges of {sum(len(g.segments) for g in interval_plan.choice.groups)} segments",
        )
    planned = Job.objects.filter(task=task, state__in=[*OPEN, State.DONE]).count()
    Task.objects.filter(pk=task.pk).update(parts=planned)


def _update_totals(task: Task, jobs: QuerySet[Job]) -> None:
    """Its totals: rows of the segments that were read, as what was polled."""
    done = jobs.filter(state=State.DONE).order_by()
    sums = done.aggregate(
        n=Count("pk"),
        before=Sum("rows_before"),
        after=Sum("rows_after"),
        size=Sum("bytes_after"),
        made=Sum("segments_after"),
    )
    before, after = int(sums["before"] or 0), int(sums["after"] or 0)
    totals = {
        "polled": before,
        "published": after,
        "rolled_up": before - after,
        "segments": int(sums["made"] or 0),
        "size_bytes": int(sums["size"] or 0),
        "publishes": sums["n"],
    }
    if sums["n"] == task.parts_done:
        return
    IndexerFence.objects.update_or_create(
        task_id=task.pk, number=0, defaults={"datasource": task.datasource, "merges": True, **totals}
    )
    Task.objects.filter(pk=task.pk).update(
        parts_done=sums["n"], message=_summary(task, jobs), last_activity_at=timezone.now()
    )
    add_log_line(task.pk, _summary(task, jobs))
    notify_task_changed(task)


def _conclude(task: Task, jobs: QuerySet[Job], spec: CompactTaskSpec, remaining: _Remaining) -> None:
    if task.goal == Goal.RUN and not remaining.found:
        _end(task, error=f"There are no segments in {spec.interval_text}: nothing to merge.")
        return
    message = _summary(task, jobs)
    if remaining.unknown_schemas:
        message += f" {remaining.unknown_schemas:,} were left: the schema of their tasks is no longer known."
    Task.objects.filter(pk=task.pk).update(message=message)
    _end(task)


def _summary(task: Task, jobs: QuerySet[Job]) -> str:
    """What was done, for a person."""
    done = list(jobs.filter(state=State.DONE).only("inputs", "segments_after", "rows_before", "rows_after"))
    if not done:
        return "Nothing was merged: the segments are large enough, or alone." if task.goal == Goal.RUN else ""
    before, after = sum(len(j.inputs) for j in done), sum(j.segments_after or 0 for j in done)
    rows, left = sum(j.rows_before for j in done), sum(j.rows_after or 0 for j in done)
    became = f"{rows:,} rows" if rows == left else f"{rows:,} rows, which became {left:,}"
    return f"{before:,} segments with {became} were merged into {after:,}."


def _end(task: Task, error: str = "") -> None:
    if error:
        add_log_line(task.pk, error, "ERROR")
    if end_task(task, error=error) and not error:
        add_log_line(task.pk, "the task has ended")
