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
from controlplane.segments.killing import Killed
from controlplane.segments.marking import Amount, Chosen, give_up, mark_unused
from controlplane.segments.models import KilledSegment, Segment
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.own_log import note
from controlplane.tasks.segment_specs import segment_spec, span_of
from ingestion.specs.tasks.segment_tasks import KillTaskSpec

LONGEST = timedelta(seconds=200)  # then the rest is given up, and goes with later deletions
LAST_S = 60.0  # for that: both are under the time limit of Celery's tasks
_AT_ONCE = 10_000  # ids of one statement


def run(task_id: str) -> bool:
    """Do a task of this kind that waits, once; False where there is none."""
    now = timezone.now()
    waiting = Task.objects.filter(pk=task_id, kind=Task.Kind.KILL, status=Status.PENDING)
    # The row count decides who does it when the message is delivered twice.
    if not waiting.update(status=Status.RUNNING, launched_at=now, started_at=now, last_heartbeat_at=now):
        return False
    task = Task.objects.select_related("datasource").get(pk=task_id)
    try:
        spec = segment_spec(task)
        if isinstance(spec, KillTaskSpec):
            _Run(task, spec).do()
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

    def do(self) -> None:
        """All of it, to the task's end."""
        task, spec = self._task, self._spec
        start, end = span_of(spec)
        versions = None if spec.versions is None else frozenset(spec.versions)
        chosen = Chosen(start=start, end=end, versions=versions)
        if spec.markAsUnused:
            by, what = f"task {task.pk}", f"kill of {spec.interval}"
            marked = mark_unused(task.datasource, chosen, by=by, what=what, go_on=self._goes_on)
            self._is_unmarked = self._is_late
            note(task.pk, f"{marked.segments:,} segments marked unused")
        ids = [] if self._stopped else unused_ids(task, chosen, spec)
        note(task.pk, f"{len(ids):,} unused segments to delete")
        Task.objects.filter(pk=task.pk).update(parts=len(ids))
        killed = killing.kill_given_up(ids, self._next(ids), at_once=spec.batchSize) if ids else Killed()
        self._conclude(ids, killed)

    def _goes_on(self) -> bool:
        """Whether there is time, and nobody has stopped it; the watch hears that it lives."""
        task = Task.objects.filter(pk=self._task.pk)
        task.update(last_heartbeat_at=timezone.now())
        self._stopped = not task.filter(goal=Goal.RUN, status=Status.RUNNING).exists()
        self._is_late = time.monotonic() > self._until
        return not (self._stopped or self._is_late)

    def _next(self, ids: Sequence[uuid.UUID]) -> Callable[[Killed], bool]:
        """Before each batch: whether to go on. Its segments are given up; once it is late, all that are left."""
        batches = iter(range(0, len(ids), min(self._spec.batchSize, killing.AT_ONCE)))

        def go_on(killed: Killed) -> bool:
            Task.objects.filter(pk=self._task.pk).update(parts_done=killed.segments)
            notify_task_changed(self._task)
            goes_on = self._goes_on()
            if self._stopped:
                return False
            first = next(batches)
            if goes_on:
                batch = ids[first : first + min(self._spec.batchSize, killing.AT_ONCE)]
                self._given_up += given_up(self._task, batch)
            else:
                self._until = time.monotonic() + LAST_S
                self._given_up += given_up(self._task, ids[first:], self._goes_on)
            return goes_on

        return go_on

    def _conclude(self, ids: Sequence[uuid.UUID], killed: Killed) -> None:
        task = self._task
        gone = killed_of(ids)
        later = self._given_up.segments - gone
        said = f"{gone:,} unused segments were deleted."
        if later > 0:
            last = _last_lease(ids)
            when = f", after {last:%Y-%m-%d %H:%M:%S} UTC" if last is not None and last > timezone.now() else ""
            said += f" Headgate deletes the files of {later:,} more later, when no reader can use them{when}."
        Task.objects.filter(pk=task.pk).update(parts_done=gone, message=said)
        note(task.pk, said)
        error = ""
        if self._stopped:
            error = f"Stopped. {said}"
        elif self._is_late or self._is_unmarked:
            error = f"{said} One task cannot delete all of them in its time. Submit it again to delete the rest."
        elif killed.error:
            error = f"{said} Deep storage did not delete the others: {killed.error}. Headgate retries automatically."
        _end(task, error=error)


def unused_ids(task: Task, chosen: Chosen, spec: KillTaskSpec) -> list[uuid.UUID]:
    """Those that it is to delete, that have been unused for longest first."""
    found = killing.unused_of(task.datasource, chosen)
    if spec.maxUsedStatusLastUpdatedTime is not None:
        found = found.filter(unused_at__lte=spec.maxUsedStatusLastUpdatedTime)
    return list(found.order_by("unused_at", "pk").values_list("pk", flat=True)[: spec.limit])


def given_up(task: Task, ids: Sequence[uuid.UUID], go_on: Callable[[], bool] = lambda: True) -> Amount:
    """Of these, those that are unused still are lost from now on. ``go_on``: see ``marking.mark_unused``."""
    amount = Amount()
    for first in range(0, len(ids), _AT_ONCE):
        amount += give_up(task.datasource, Chosen(ids=frozenset(ids[first : first + _AT_ONCE])), go_on=go_on)
    return amount


def killed_of(ids: Sequence[uuid.UUID]) -> int:
    """How many of these are gone with their files, whoever deleted them."""
    parts = (ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE))
    return sum(KilledSegment.objects.filter(pk__in=part).count() for part in parts)


def _last_lease(ids: Sequence[uuid.UUID]) -> datetime | None:
    parts = (ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE))
    latest = [Segment.objects.filter(pk__in=part, used=False).aggregate(at=Max("unused_at"))["at"] for part in parts]
    known = [at for at in latest if at is not None]
    return max(known) + settings.SNAPSHOT_LEASE if known else None


def _end(task: Task, error: str = "") -> None:
    if error:
        note(task.pk, error, "ERROR")
    end_task(task, error=error)
