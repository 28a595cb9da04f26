"""A supervisor's tasks, as its round looks at them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.db.models import Max, Min
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.supervisors import rollout_limit, small_topics
from controlplane.supervisors.decide import HEALTHY_AFTER, TaskSnapshot
from controlplane.supervisors.models import Supervisor
from controlplane.tasks import capacity
from controlplane.tasks.models import Goal, Status, Task

MAX_ENDED = 20
_NO_FENCE: tuple[datetime | None, int] = (None, 0)
_ENDED_COLUMNS = (
    "id",
    "spec_version",
    "status",
    "goal",
    "indexers_wanted",
    "created_at",
    "launched_at",
    "ended_at",
    "replica_group",
)


def tasks_of(supervisor: Supervisor) -> list[Task]:
    """Newest first: all that have not ended, and enough of those that have."""
    own_tasks = Task.objects.ingesting().filter(supervisor_id=supervisor.pk)
    active = own_tasks.active().prefetch_related("indexers")
    most_ended = max(
        MAX_ENDED,
        settings.SUPERVISOR_TASK_UNHEALTHINESS_THRESHOLD,
        settings.SUPERVISOR_TASK_HEALTHINESS_THRESHOLD,
    )
    ended = own_tasks.filter(status__in=[Status.SUCCESS, Status.FAILED]).only(*_ENDED_COLUMNS)[:most_ended]
    return sorted([*active, *ended], key=lambda t: (t.created_at, t.pk), reverse=True)


def snapshots_of(supervisor: Supervisor, tasks: list[Task]) -> list[TaskSnapshot]:
    """What ``decide`` is told of them. One that has read long enough is not expired while it waits for its turn."""
    snapshots = _snapshots(tasks, supervisor.handoff_asked_at)
    due = {t.id for t in snapshots if t.expired and not t.to_hand_off}
    if due and rollout_limit.must_wait(supervisor, tasks):
        snapshots = [replace(t, expired=False) if t.id in due else t for t in snapshots]
    too_large = small_topics.outgrown(supervisor, tasks)
    return [replace(t, expired=True) if t.id in too_large else t for t in snapshots]


def _snapshots(tasks: list[Task], handoff_asked_at: datetime | None) -> list[TaskSnapshot]:
    """A replica has read, and was launched, for as long as the first of its group."""
    fences = _fences([t.pk for t in tasks])
    reads_since = _first_of_group((t, fences.get(t.pk, _NO_FENCE)[0]) for t in tasks)
    launched = _first_of_group((t, t.launched_at) for t in tasks if not t.ended)
    return [
        replace(
            _snapshot(t, began, reads_since[t.pk], _is_before(launched.get(t.pk), handoff_asked_at)),
            published=bool(publishes),
            has_begun_reading=began is not None,
        )
        for t in tasks
        for began, publishes in [fences.get(t.pk, _NO_FENCE)]
    ]


def _first_of_group(moments: Iterable[tuple[Task, datetime | None]]) -> dict[str, datetime | None]:
    """By task: the first moment of its group's, its own where it is in none."""
    moments = list(moments)
    first: dict[str, datetime] = {}
    for task, moment in moments:
        if task.replica_group and moment is not None:
            first[task.replica_group] = min(moment, first.get(task.replica_group, moment))
    return {task.pk: first.get(task.replica_group, moment) for task, moment in moments}


def _fences(task_ids: list[str]) -> dict[str, tuple[datetime | None, int]]:
    """Of those whose indexers have started: when the first did, and the most that one has published."""
    fences = IndexerFence.objects.filter(task_id__in=task_ids).values_list("task_id").order_by()
    return {pk: (first, most) for pk, first, most in fences.annotate(Min("started_at"), Max("publishes"))}


def _snapshot(
    task: Task, reads_since: datetime | None, group_since: datetime | None, to_hand_off: bool
) -> TaskSnapshot:
    """``to_hand_off``: it was launched before that was asked, by what was in force then."""
    states = {i.state for i in task.indexers.all()} if task.status == Status.RUNNING else set()
    reading = "reading" in states
    expires_at = _expires_at(task, group_since)
    return TaskSnapshot(
        id=task.pk,
        spec_version=task.spec_version or 0,
        active=not task.ended,
        reading=reading,
        ready=bool(states & {"reading", "waiting"}),
        expired=not task.ended and (_is_before(expires_at, timezone.now()) or to_hand_off),
        expires_at=expires_at,
        to_hand_off=to_hand_off,
        waits_for_predecessor=capacity.crowded_out(task, timezone.now()),
        waits_for=capacity.lacks_room(task, timezone.now()),
        failed=task.status == Status.FAILED and not _stopped_before_launch(task),
        goal_is_run=task.goal == Goal.RUN,
        indexers_wanted=task.indexers_wanted,
        created_at=task.created_at,
        ended_at=task.ended_at,
        group=task.replica_group,
        refused="refused" in states,
        shared=not task.ended and bool(task.observation.get("strangers")),
        healthy=reading
        and "refused" not in states
        and reads_since is not None
        and timezone.now() - reads_since > HEALTHY_AFTER,
    )


def _stopped_before_launch(task: Task) -> bool:
    """It was told to stop before it was launched: that says nothing of how the next one does."""
    return task.goal != Goal.RUN and task.launched_at is None


def _is_before(first: datetime | None, second: datetime | None) -> bool:
    return first is not None and second is not None and first < second


def _expires_at(task: Task, reading_since: datetime | None) -> datetime | None:
    if task.ended or task.is_bounded or reading_since is None:
        return None
    duration = task.io_config.taskDuration
    return None if duration is None else reading_since + duration
