"""The run loop: observe, decide, apply; one at a time for a supervisor."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import HeadgateError
from controlplane.supervisors.decide import Decision, Observed, SeenTask, decide
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.services import create_task, set_goal
from ingestion.specs import parse_supervisor_spec

logger = logging.getLogger(__name__)
TASKS_LOOKED_AT = 20
ERRORS_KEPT = 10


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
        task_count=version.spec["spec"]["ioConfig"]["taskCount"],
        tasks=[_seen(t) for t in _tasks(supervisor)],
        same_task=_same_but_for_task_count(supervisor, version),
        longest_delay=settings.RESTART_LONGEST_DELAY,
    )


def _tasks(supervisor: Supervisor) -> list[Task]:
    mine = Task.objects.reading().filter(supervisor_id=supervisor.pk)
    return list(mine.prefetch_related("indexers")[:TASKS_LOOKED_AT])


def _seen(task: Task) -> SeenTask:
    return SeenTask(
        id=task.pk,
        spec_version=task.spec_version or 0,
        active=not task.ended,
        reading=task.status == Status.RUNNING and any(i.state == "reading" for i in task.indexers.all()),
        failed=task.status == Status.FAILED,
        running_goal=task.goal == Goal.RUN,
        indexers_wanted=task.indexers_wanted,
        created_at=task.created_at,
        ended_at=task.ended_at,
    )


def _same_but_for_task_count(supervisor: Supervisor, current: SpecVersion) -> frozenset[int]:
    if current.spec["spec"]["ioConfig"].get("assignment") == "offset_range":
        return frozenset()  # who reads which partition is settled when a task begins
    recent = supervisor.versions.filter(version__lt=current.version)[:TASKS_LOOKED_AT]
    wanted = (_without_task_count(current), current.secrets)
    return frozenset(v.version for v in recent if (_without_task_count(v), v.secrets) == wanted)


def _without_task_count(version: SpecVersion) -> dict[str, object]:
    spec = version.spec["spec"]
    io_config = {k: v for k, v in spec["ioConfig"].items() if k != "taskCount"}
    return {**spec, "ioConfig": io_config}


def apply(supervisor: Supervisor, decision: Decision) -> None:
    """Carry out a decision; the supervisor's row is locked by the caller."""
    for task in Task.objects.filter(pk__in=decision.finish):
        set_goal(task, Goal.FINISH)
    for task_id, indexers in decision.scale.items():
        Task.objects.active().filter(pk=task_id).update(indexers_wanted=indexers)
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
        spec=spec.task_spec(),
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
