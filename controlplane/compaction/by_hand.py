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

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.common.errors import HeadgateError
from controlplane.compaction.configs import Policy
from controlplane.compaction.models import OPEN, Job, State
from controlplane.compaction.planning import Looked, Span, make_job, segments_of_each
from controlplane.compaction.policy import LARGE, Choice, Limits, all_of
from controlplane.publishing.models import IndexerFence
from controlplane.segments.models import Interval, Segment
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.own_log import note
from controlplane.tasks.segment_specs import segment_spec, span_of
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec

ATTEMPTS = 3  # failed jobs, after which it has failed
AT_ONCE = 64  # jobs of a task that are open
LOOKED_AT = 200  # intervals whose segments are read at once


@dataclass(frozen=True)
class _Left:
    """What is still to be done of a task."""

    merges: Sequence[Looked] = ()
    elsewhere: bool = False  # jobs of others are at work on some of its segments
    found: bool = False  # there are segments
    unknown: int = 0  # of tasks whose schema is not known any more


def run() -> None:
    """One round over all of them that have not ended."""
    for task in (
        Task.objects.active().filter(kind=Task.Kind.COMPACT).select_related("datasource").order_by("created_at")
    ):
        try:
            _go_on(task)
        except HeadgateError as problem:
            _end(task, error=problem.detail)


def _go_on(task: Task) -> None:
    spec = segment_spec(task)
    if not isinstance(spec, CompactTaskSpec) or not _has_begun(task):
        return
    mine = Job.objects.filter(task=task)
    if task.goal != Goal.RUN and _was_stopped(task, mine):
        return
    _sum_up(task, mine)
    if mine.filter(state__in=OPEN).exists():
        return
    failed = mine.filter(state=State.FAILED).order_by("-ended_at")
    newest = failed.first()
    if task.goal == Goal.RUN and newest is not None and (newest.permanent or failed.count() >= ATTEMPTS):
        _end(task, error=f"A merge failed: {newest.error} {_summary(task, mine)}")
        return
    left = _left(task, spec) if task.goal == Goal.RUN else _Left()
    if left.merges:
        _make_jobs(task, spec, left)
    elif not left.elsewhere:
        _conclude(task, mine, spec, left)


def _has_begun(task: Task) -> bool:
    """A task that waits begins now; False for one that was stopped before."""
    if task.status != Status.PENDING:
        return True
    task.started_at = task.launched_at = timezone.now()
    waiting = Task.objects.filter(pk=task.pk, status=Status.PENDING)
    if not waiting.update(status=Status.RUNNING, launched_at=task.launched_at, started_at=task.started_at):
        return False
    task.status = Status.RUNNING
    notify_task_changed(task, urgent=True)
    return True


def _was_stopped(task: Task, mine: QuerySet[Job]) -> bool:
    """With ``finish`` the jobs that run end; else they are given up: an attempt that goes on replaces nothing."""
    given_up = OPEN if task.goal == Goal.STOP else (State.WAITING,)
    now = timezone.now()
    mine.filter(state__in=given_up).update(
        state=State.FAILED, permanent=True, error="Its task was stopped.", ended_at=now
    )
    if task.goal != Goal.STOP:
        return False
    _sum_up(task, mine)
    _end(task, error=f"Stopped. {_summary(task, mine)}".strip())
    return True


def _left(task: Task, spec: CompactTaskSpec) -> _Left:
    start, end = span_of(spec)
    limits = Limits(target_rows=spec.tuningConfig.rows_per_segment)
    there = Interval.objects.filter(datasource=task.datasource, segments__gt=0, start__lt=end, end__gt=start)
    merges: list[Looked] = []
    unknown = 0
    elsewhere = False
    unfinished = _unfinished(task, (start, end), limits)
    for at in range(0, len(unfinished), LOOKED_AT):
        intervals = _intervals(task, unfinished[at : at + LOOKED_AT])
        segments, written = segments_of_each(intervals)
        taken = _taken(intervals)
        for interval in intervals:
            mine = [s for s in segments[interval.start, interval.end] if s.created_at < _began(task)]
            free = [s for s in mine if s.id not in taken]
            unknown += sum(s.kind is None for s in mine)
            elsewhere = elsewhere or len(free) < len(mine)
            groups = tuple(all_of(free, limits))
            if groups:
                merges.append(Looked(interval, Choice(groups), written))
            if sum(len(m.choice.groups) for m in merges) >= AT_ONCE:
                return _Left(merges, elsewhere, True, unknown)
    return _Left(merges, elsewhere, there.exists(), unknown)


def _unfinished(task: Task, span: Span, limits: Limits) -> list[Span]:
    """Its intervals that have segments which may be merged or cut up, by time: what is done costs nothing again."""
    mine = Segment.objects.filter(
        datasource=task.datasource,
        used=True,
        interval_start__lt=span[1],
        interval_end__gt=span[0],
        created_at__lt=_began(task),
    )
    small = Q(rows__lt=limits.target_rows * LARGE, size_bytes__lt=limits.target_bytes * LARGE)
    by_interval = mine.values("interval_start", "interval_end").annotate(
        small=Count("pk", filter=small), large=Count("pk", filter=Q(rows__gt=limits.target_rows))
    )
    found = by_interval.filter(Q(small__gt=1) | Q(large__gt=0)).order_by("interval_start", "interval_end")
    return list(found.values_list("interval_start", "interval_end"))


def _intervals(task: Task, spans: Sequence[Span]) -> list[Interval]:
    found = Interval.objects.filter(datasource=task.datasource, start__in={start for start, _ in spans})
    wanted = set(spans)
    ordered = found.select_related("datasource").order_by("start", "end")
    return [interval for interval in ordered if (interval.start, interval.end) in wanted]


def _began(task: Task) -> datetime:
    return task.started_at or task.created_at


def _taken(intervals: Sequence[Interval]) -> set[object]:
    """The segments that open jobs read."""
    at_work = Job.objects.filter(
        datasource=intervals[0].datasource_id, interval_start__in={i.start for i in intervals}, state__in=OPEN
    )
    return {i for inputs in at_work.values_list("inputs", flat=True) for i in inputs}


@transaction.atomic
def _make_jobs(task: Task, spec: CompactTaskSpec, left: _Left) -> None:
    policy = Policy(Limits(target_rows=spec.tuningConfig.rows_per_segment), priority=spec.priority)
    given = spec.tuningConfig.indexSpec if "indexSpec" in spec.tuningConfig.model_fields_set else None
    index_spec = None if given is None else given.model_dump(mode="json", exclude_defaults=True)
    for looked in left.merges:
        for group in looked.choice.groups:
            make_job(looked, group, policy, task, index_spec)
        many, when = len(looked.choice.groups), f"{looked.interval.start:%Y-%m-%dT%H:%M:%SZ}"
        note(
            task.pk, f"interval {when}: {many} merges of {sum(len(g.segments) for g in looked.choice.groups)} segments"
        )
    planned = Job.objects.filter(task=task, state__in=[*OPEN, State.DONE]).count()
    Task.objects.filter(pk=task.pk).update(parts=planned)


def _sum_up(task: Task, mine: QuerySet[Job]) -> None:
    """Its totals: rows of the segments that were read, as what was polled."""
    done = mine.filter(state=State.DONE).order_by()
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
        parts_done=sums["n"], message=_summary(task, mine), last_activity_at=timezone.now()
    )
    note(task.pk, _summary(task, mine))
    notify_task_changed(task)


def _conclude(task: Task, mine: QuerySet[Job], spec: CompactTaskSpec, left: _Left) -> None:
    if task.goal == Goal.RUN and not left.found:
        _end(task, error=f"There are no segments in {spec.interval_text}: nothing to merge.")
        return
    said = _summary(task, mine)
    if left.unknown:
        said += f" {left.unknown:,} were left: the schema of their tasks is no longer known."
    Task.objects.filter(pk=task.pk).update(message=said)
    _end(task)


def _summary(task: Task, mine: QuerySet[Job]) -> str:
    """What was done, for a person."""
    done = list(mine.filter(state=State.DONE).only("inputs", "segments_after", "rows_before", "rows_after"))
    if not done:
        return "Nothing was merged: the segments are large enough, or alone." if task.goal == Goal.RUN else ""
    before, after = sum(len(j.inputs) for j in done), sum(j.segments_after or 0 for j in done)
    rows, left = sum(j.rows_before for j in done), sum(j.rows_after or 0 for j in done)
    became = f"{rows:,} rows" if rows == left else f"{rows:,} rows, which became {left:,}"
    return f"{before:,} segments with {became} were merged into {after:,}."


def _end(task: Task, error: str = "") -> None:
    if error:
        note(task.pk, error, "ERROR")
    if end_task(task, error=error) and not error:
        note(task.pk, "the task has ended")
