"""The run loop: observe, decide, apply; one at a time for a supervisor."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Min
from django.utils import timezone
from pydantic import TypeAdapter

from controlplane.common.errors import HeadgateError
from controlplane.segments.models import Writer
from controlplane.supervisors import scaling
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.decide import Decision, Observed, SeenTask, decide
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks import capacity
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.services import create_task, set_goal
from ingestion.specs import parse_supervisor_spec

logger = logging.getLogger(__name__)
TASKS_LOOKED_AT = 20
ERRORS_KEPT = 10
_PERIOD = TypeAdapter(timedelta)


def run_all() -> None:
    """One round over all supervisors that are not yet at rest."""
    for pk in Supervisor.objects.exclude(detailed_state="TERMINATED").values_list("pk", flat=True):
        try:
            run(pk)
        except HeadgateError as error:
            logger.warning("supervisor %s: %s", pk, error.detail)


@transaction.atomic
def run(supervisor_id: str) -> Decision | None:
    """One round for one supervisor; None when another process is at it."""
    # The row lock makes it one at a time; who finds it locked has nothing to add.
    supervisor = Supervisor.objects.select_for_update(skip_locked=True).filter(pk=supervisor_id).first()
    if supervisor is None:
        return None
    scaling.look(supervisor, supervisor.versions.get(version=supervisor.version).spec["spec"]["ioConfig"])
    decision = decide(observe(supervisor))
    apply(supervisor, decision)
    return decision


def observe(supervisor: Supervisor) -> Observed:
    """What there is of the supervisor's tasks."""
    version = supervisor.versions.get(version=supervisor.version)
    return Observed(
        now=timezone.now(),
        suspended=supervisor.suspended,
        terminated=supervisor.terminated_at is not None,
        version=supervisor.version,
        task_count=wanted_task_count(version.spec["spec"]["ioConfig"], supervisor.decided_task_count),
        tasks=[_seen(t, supervisor.handoff_asked_at) for t in _tasks(supervisor)],
        same_task=_same_but_for_task_count(supervisor, version),
        scales_in_place=not _deals_out_by_number(version),
        longest_delay=settings.RESTART_LONGEST_DELAY,
        not_before=_first_start(supervisor, version),
    )


def _first_start(supervisor: Supervisor, version: SpecVersion) -> datetime | None:
    delay = version.spec["spec"]["ioConfig"].get("startDelay")
    return None if delay is None else supervisor.created_at + _PERIOD.validate_python(delay)


def _tasks(supervisor: Supervisor) -> list[Task]:
    mine = Task.objects.reading().filter(supervisor_id=supervisor.pk)
    return list(mine.prefetch_related("indexers")[:TASKS_LOOKED_AT])


def _seen(task: Task, handoff_asked_at: datetime | None) -> SeenTask:
    states = {i.state for i in task.indexers.all()} if task.status == Status.RUNNING else set()
    return SeenTask(
        id=task.pk,
        spec_version=task.spec_version or 0,
        active=not task.ended,
        reading="reading" in states,
        ready=bool(states & {"reading", "waiting"}),
        expired=_has_expired(task, handoff_asked_at),
        crowded_out=_is_crowded_out(task),
        failed=task.status == Status.FAILED,
        running_goal=task.goal == Goal.RUN,
        indexers_wanted=task.indexers_wanted,
        created_at=task.created_at,
        ended_at=task.ended_at,
    )


def _is_crowded_out(task: Task) -> bool:
    waits = task.status == Status.PENDING and task.launched_at is None and settings.WORKER_CAPACITY
    return bool(waits) and capacity.must_give_way(capacity.pool(), task.pk, timezone.now())


def _has_expired(task: Task, handoff_asked_at: datetime | None) -> bool:
    duration = task.spec["spec"]["ioConfig"].get("taskDuration")
    if duration is None or task.status != Status.RUNNING:
        return False
    reading_since = Writer.objects.filter(task_id=task.pk).aggregate(first=Min("started_at"))["first"]
    if reading_since is None:
        return False
    if handoff_asked_at is not None and reading_since < handoff_asked_at:
        return True
    return bool(timezone.now() - reading_since > _PERIOD.validate_python(duration))


def _same_but_for_task_count(supervisor: Supervisor, current: SpecVersion) -> frozenset[int]:
    if _deals_out_by_number(current):
        return frozenset()
    recent = supervisor.versions.filter(version__lt=current.version)[:TASKS_LOOKED_AT]
    wanted = (_without_task_count(current), current.secrets)
    return frozenset(v.version for v in recent if (_without_task_count(v), v.secrets) == wanted)


def _deals_out_by_number(version: SpecVersion) -> bool:
    """Who reads which partition is settled when a task begins."""
    return bool(version.spec["spec"]["ioConfig"].get("assignment") == "offset_range")


def _without_task_count(version: SpecVersion) -> dict[str, object]:
    spec = version.spec["spec"]
    io_config = {k: v for k, v in spec["ioConfig"].items() if k not in ("taskCount", "autoScalerConfig")}
    return {**spec, "ioConfig": io_config}


def apply(supervisor: Supervisor, decision: Decision) -> None:
    """Carry out a decision; the supervisor's row is locked by the caller."""
    # First what takes the pool's lock: a launch takes it before a task's row, too.
    for task_id, indexers in decision.scale.items():
        capacity.scale(task_id, indexers)
    for task in Task.objects.filter(pk__in=decision.finish):
        set_goal(task, Goal.FINISH)
    if decision.start:
        _start_task(supervisor)
    supervisor.state = decision.state
    supervisor.detailed_state = decision.detailed_state
    supervisor.failures = decision.failures
    supervisor.next_start_at = decision.next_start_at
    supervisor.recent_errors = _recent_errors(supervisor)
    supervisor.ran_at = timezone.now()
    supervisor.save()


def _start_task(supervisor: Supervisor) -> None:
    version = supervisor.versions.get(version=supervisor.version)
    spec = parse_supervisor_spec(version.spec)
    create_task(
        datasource=supervisor.datasource,
        spec=spec.task_spec(wanted_task_count(version.spec["spec"]["ioConfig"], supervisor.decided_task_count)),
        supervisor_id=supervisor.pk,
        spec_version=version.version,
        sealed=version.secrets,
        user=version.created_by,
    )


def _recent_errors(supervisor: Supervisor) -> list[dict[str, str]]:
    failed = Task.objects.filter(supervisor_id=supervisor.pk, status=Status.FAILED)[:ERRORS_KEPT]
    return [
        {"task": t.pk, "at": t.ended_at.isoformat() if t.ended_at else "", "message": t.error[:1000]} for t in failed
    ]
