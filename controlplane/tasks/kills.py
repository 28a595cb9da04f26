"""Tasks that delete unused segments: Druid's ``kill``.

1. With ``markAsUnused`` all of the interval is marked unused first.
2. A batch is given up: nobody can use it again. Then the files go of which no reader's lease holds any; the others go
   with the deletions of every few minutes, as does what a worker leaves that is killed in between.
3. A task that is told to stop leaves the batches that it has not come to as they are; so does one whose time is over.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from controlplane.common.errors import HeadgateError
from controlplane.segments import killing
from controlplane.segments.killing import KillResult
from controlplane.segments.marking import Amount, SegmentSelection, give_up, mark_unused
from controlplane.segments.models import KilledSegment, Segment
from controlplane.segments.snapshot_leases import with_leases
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.logs import add_log_line
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.segment_specs import segment_spec, span_of
from ingestion.specs.tasks.segment_tasks import KillTaskSpec

LONGEST = timedelta(seconds=200)  # then the rest is given up, and goes with later deletions
LAST_S = 60.0  # for that: both are under the time limit of Celery's tasks
_IDS_PER_STATEMENT = 10_000  # ids of one statement


def run(task_id: str) -> bool:
    """Do a task of this kind that waits, once; False where there is none."""
    now = timezone.now()
    waiting = Task.objects.filter(pk=task_id, kind=Task.Kind.KILL, status=Status.PENDING)
    # The row count decides who does it when the message is delivered twice.
    if not waiting.update(
        status=Status.RUNNING, launched_at=now, started_at=now, last_heartbeat_at=now, host=settings.HOST_NAME
    ):
        return False
    task = Task.objects.select_related("datasource").get(pk=task_id)
    try:
        spec = segment_spec(task)
        if isinstance(spec, KillTaskSpec):
            _Run(task, spec).run()
    except HeadgateError as problem:
        _end(task, error=problem.detail)
    return True


class _Run:
    def __init__(self, task: Task, spec: KillTaskSpec) -> None:
        self._task = task
        self._spec = spec
        self._until = time.monotonic() + LONGEST.total_seconds()
        self._given_up = Amount()
        self._stopped = self._is_late = self._is_unmarked = False

    def run(self) -> None:
        """All of it, to the task's end."""
        task, spec = self._task, self._spec
        start, end = span_of(spec)
        versions = None if spec.versions is None else frozenset(spec.versions)
        chosen = SegmentSelection(start=start, end=end, versions=versions)
        if spec.markAsUnused:
            by, what = f"task {task.pk}", f"kill of {spec.interval}"
            marked = mark_unused(task.datasource, chosen, by=by, what=what, go_on=self._may_continue)
            self._is_unmarked = self._is_late
            add_log_line(task.pk, f"{marked.segments:,} segments marked unused")
        ids = [] if self._stopped else unused_ids(task, chosen, spec)
        add_log_line(task.pk, f"{len(ids):,} unused segments to delete")
        Task.objects.filter(pk=task.pk).update(parts=len(ids))
        killed = killing.kill_given_up(ids, self._make_step(ids), at_once=spec.batchSize) if ids else KillResult()
        self._conclude(ids, killed)

    def _may_continue(self) -> bool:
        """Whether there is time, and nobody has stopped it; the watch hears that it lives."""
        task = Task.objects.filter(pk=self._task.pk)
        task.update(last_heartbeat_at=timezone.now())
        self._stopped = not task.filter(goal=Goal.RUN, status=Status.RUNNING).exists()
        self._is_late = time.monotonic() > self._until
        return not (self._stopped or self._is_late)

    def _make_step(self, ids: Sequence[uuid.UUID]) -> Callable[[KillResult], bool]:
        """Before each batch: whether to go on. Its segments are given up; once it is late, all that are left."""
        batches = iter(range(0, len(ids), min(self._spec.batchSize, killing.BATCH_SIZE)))

        def go_on(killed: KillResult) -> bool:
            Task.objects.filter(pk=self._task.pk).update(parts_done=killed.segments)
            notify_task_changed(self._task)
            goes_on = self._may_continue()
            if self._stopped:
                return False
            first = next(batches)
            if goes_on:
                batch = ids[first : first + min(self._spec.batchSize, killing.BATCH_SIZE)]
                self._given_up += give_up_in_batches(self._task, batch)
            else:
                self._until = time.monotonic() + LAST_S
                self._given_up += give_up_in_batches(self._task, ids[first:], self._may_continue)
            return goes_on

        return go_on

    def _conclude(self, ids: Sequence[uuid.UUID], killed: KillResult) -> None:
        task = self._task
        killed_count = count_killed(ids)
        pending = self._given_up.segments - killed_count
        message = f"{killed_count:,} unused segments were deleted."
        if pending > 0:
            last = _last_lease(ids)
            when = f", after {last:%Y-%m-%d %H:%M:%S} UTC" if last is not None and last > timezone.now() else ""
            message += f" Headgate deletes the files of {pending:,} more later, when no reader can use them{when}."
        Task.objects.filter(pk=task.pk).update(parts_done=killed_count, message=message)
        add_log_line(task.pk, message)
        error = ""
        if self._stopped:
            error = f"Stopped. {message}"
        elif self._is_late or self._is_unmarked:
            error = f"{message} One task cannot delete all of them in its time. Submit it again to delete the rest."
        elif killed.error:
            error = f"{message} Deep storage did not delete the others: {killed.error}. Headgate retries automatically."
        _end(task, error=error)


def unused_ids(task: Task, chosen: SegmentSelection, spec: KillTaskSpec) -> list[uuid.UUID]:
    """Those that it is to delete, that have been unused for longest first."""
    segments = killing.deletable_segments(task.datasource, chosen)
    if spec.maxUsedStatusLastUpdatedTime is not None:
        segments = segments.filter(unused_at__lte=spec.maxUsedStatusLastUpdatedTime)
    return list(segments.order_by("unused_at", "pk").values_list("pk", flat=True)[: spec.limit])


def give_up_in_batches(task: Task, ids: Sequence[uuid.UUID], go_on: Callable[[], bool] = lambda: True) -> Amount:
    """Of these, those that are unused still are lost from now on. ``go_on``: see ``marking.mark_unused``."""
    amount = Amount()
    for first in range(0, len(ids), _IDS_PER_STATEMENT):
        amount += give_up(
            task.datasource, SegmentSelection(ids=frozenset(ids[first : first + _IDS_PER_STATEMENT])), go_on=go_on
        )
    return amount


def count_killed(ids: Sequence[uuid.UUID]) -> int:
    """How many of these are gone with their files, whoever deleted them."""
    parts = (ids[first : first + _IDS_PER_STATEMENT] for first in range(0, len(ids), _IDS_PER_STATEMENT))
    return sum(KilledSegment.objects.filter(pk__in=part).count() for part in parts)


def _last_lease(ids: Sequence[uuid.UUID]) -> datetime | None:
    """When the last of these can be deleted; None if all are."""
    parts = (ids[first : first + _IDS_PER_STATEMENT] for first in range(0, len(ids), _IDS_PER_STATEMENT))
    times = []
    for part in parts:
        segments = with_leases(Segment.objects.filter(pk__in=part, used=False))
        latest = segments.aggregate(unused=Max("unused_at"), leased=Max("leased_until"))
        if latest["unused"] is not None:
            times.append(latest["unused"] + settings.SNAPSHOT_LEASE)
        if latest["leased"] is not None:
            times.append(latest["leased"])
    return max(times, default=None)


def _end(task: Task, error: str = "") -> None:
    if error:
        add_log_line(task.pk, error, "ERROR")
    end_task(task, error=error)
