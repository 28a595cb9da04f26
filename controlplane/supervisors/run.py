"""The run loop: observe, decide, apply; one at a time for a supervisor.

Rounds over all supervisors answer at the database only, and follow whatever has happened within two seconds. Once a
supervisor's ``period`` a round is an iteration: Kafka was asked before it.
"""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.database import try_advisory_lock
from controlplane.common.ids import task_id
from controlplane.quotas.services import team_over_quota
from controlplane.sources.models import SourceEvent
from controlplane.supervisors import autoscaler, small_topics, topic_checks, topic_supervisors
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.supervisors.bounded import bounded_progress
from controlplane.supervisors.decide import (
    Decision,
    LastGood,
    Observation,
    TaskSnapshot,
    Thresholds,
    calm_until,
    decide,
    unhealthy_state,
)
from controlplane.supervisors.models import SpecVersion, Supervisor, start_accepted_at
from controlplane.supervisors.states import Detail
from controlplane.supervisors.task_snapshot import snapshots_of, tasks_of
from controlplane.supervisors.topic_checks import TopicAnswer
from controlplane.tasks import capacity
from controlplane.tasks.bounded_reads import ranges_of
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.services import create_task
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from ingestion.specs.tasks.stored_specs import without_scaling

logger = logging.getLogger(__name__)
_ITERATION_LOCK = 0x49544552
_UNASKED = Q(suspended=False, terminated_at=None, contacted_at=None, failed_runs=0)  # its first iteration is to come


def run_all() -> None:
    """One round over all supervisors for which it may change something, and that have asked Kafka before."""
    completed = Q(detailed_state=Detail.COMPLETED, terminated_at=None)  # one that was terminated then has yet to say so
    live = Supervisor.objects.exclude(detailed_state=Detail.TERMINATED).exclude(completed | _UNASKED)
    rounds = live.exclude(_suspended_and_at_rest()).exclude(_is_calm())
    for pk in rounds.values_list("pk", flat=True):
        try:
            run(pk)
        except Exception:  # one supervisor's trouble is not the others'; its iterations count it
            logger.exception("a round of supervisor %s failed", pk)


def _suspended_and_at_rest() -> Q:
    """It says that it is suspended, and all of its tasks had ended when it last had a round: the next changes nothing.

    A round costs ten statements, every two seconds; there may be hundreds of suspended supervisors.
    """
    since = Task.objects.filter(supervisor_id=OuterRef("pk")).filter(
        Q(ended_at=None) | Q(ended_at__gte=OuterRef("ran_at"))
    )
    at_rest = Q(suspended=True, terminated_at=None, detailed_state=Detail.SUSPENDED, ran_at__isnull=False)
    return Q(~Exists(since)) & at_rest


def _is_calm() -> Q:
    """It has what it is to have, as of a moment ago, and no task of it has begun, ended or been told to since.

    Its rounds would only write down that they were had; with hundreds of supervisors they would keep a processor busy.
    """
    changed = Task.objects.filter(supervisor_id=OuterRef("pk")).filter(
        Q(created_at__gte=OuterRef("ran_at"))
        | Q(started_at__gte=OuterRef("ran_at"))
        | Q(ended_at__gte=OuterRef("ran_at"))
        | (Q(ended_at=None) & ~Q(goal=Goal.RUN))
    )
    return Q(~Exists(changed), calm_until__gt=timezone.now(), suspended=False, terminated_at=None)


def iterate() -> None:
    """Ask Kafka for every supervisor whose period is over, and have a round for each as its answer comes in."""
    with try_advisory_lock(_ITERATION_LOCK) as acquired:
        if acquired:
            _iterate(topic_checks.claim_questions(topic_checks.due_supervisors()))


def run_now(supervisor_id: str) -> None:
    """A round at once; an iteration if it begins."""
    _iterate(topic_checks.claim_questions(topic_checks.due_supervisors().filter(pk=supervisor_id, contacted_at=None)))
    if not Supervisor.objects.filter(_UNASKED, pk=supervisor_id).exists():
        run(supervisor_id)


def _iterate(questions: list[topic_checks.Question]) -> None:
    for answer in topic_checks.answers(questions):
        try:
            run(answer.supervisor_id, answer)
        except Exception as error:
            logger.exception("an iteration of supervisor %s failed", answer.supervisor_id)
            _record_failure(answer.supervisor_id, error)


@transaction.atomic
def _record_failure(supervisor_id: str, error: Exception) -> None:
    """The iteration failed after Kafka had answered: nothing was decided."""
    supervisor = Supervisor.objects.select_for_update().get(pk=supervisor_id)
    topic_checks.count_failure(supervisor, error)
    detail = unhealthy_state(topic_checks.runs_of(supervisor), _thresholds())
    supervisor.detailed_state = detail or supervisor.detailed_state
    supervisor.calm_until = None
    supervisor.recent_errors = _recent_errors(supervisor)
    supervisor.save()


@transaction.atomic
def run(supervisor_id: str, answer: TopicAnswer | None = None) -> Decision | None:
    """One round for one supervisor; None when another process is at it, or others read its topics for it.

    ``answer``: what asking Kafka came to.
    """
    # The row lock makes it one at a time; who finds it locked has nothing to add, but for what Kafka said.
    locked = Supervisor.objects.select_for_update(skip_locked=answer is None)
    supervisor = locked.filter(pk=supervisor_id).first()
    if supervisor is None:
        return None
    before = _columns(supervisor)
    if answer is not None:
        topic_checks.apply_answer(supervisor, answer)
    if supervisor.io_config.topicPattern is not None:
        topic_supervisors.run_topics(supervisor, answer, _thresholds())
        _save_changed(supervisor, before)
        return None
    autoscaler.scale_if_due(supervisor)
    observed = observe(supervisor)
    decision = decide(observed)
    apply(supervisor, decision)
    supervisor.ran_at = observed.now
    # An autoscaler looks at its lag in rounds.
    supervisor.calm_until = None if supervisor.io_config.auto_scaler else calm_until(observed, decision)
    _save_changed(supervisor, before)
    return decision


def _save_changed(supervisor: Supervisor, before: dict[str, Any]) -> None:
    """Most rounds change no more than when they were had: the rest of the row, with its lists, need not be written."""
    supervisor.save(update_fields=[name for name, value in _columns(supervisor).items() if value != before[name]])


def _columns(supervisor: Supervisor) -> dict[str, Any]:
    return {f.attname: getattr(supervisor, f.attname) for f in supervisor._meta.concrete_fields}


def observe(supervisor: Supervisor) -> Observation:
    """What there is of the supervisor's tasks, and of its iterations."""
    version = supervisor.current
    io_config = version.io_config
    tasks = tasks_of(supervisor)
    _update_partitions(supervisor, tasks)
    snapshots = snapshots_of(supervisor, tasks)
    in_force = _version_in_force(supervisor, snapshots)
    return Observation(
        now=timezone.now(),
        suspended=supervisor.suspended,
        terminated=supervisor.terminated_at is not None,
        version=supervisor.version,
        task_count=_task_count(supervisor),
        replicas=io_config.replicas,
        tasks=snapshots,
        same_work_versions=_same_but_for_task_count(supervisor, version, tasks),
        scales_in_place=not (io_config.traits.assigns_by_number or io_config.boundedStreamConfig),
        longest_delay=settings.RESTART_LONGEST_DELAY,
        not_before=topic_checks.first_start(supervisor),
        runs=topic_checks.runs_of(supervisor),
        thresholds=_thresholds(),
        previous=supervisor.detail,
        steady=supervisor.steady,
        over_quota=team_over_quota(supervisor.datasource.team_id) is not None,
        in_force=in_force,
        last_good=_last_good(supervisor, in_force),
        idle=supervisor.idle_since is not None,
        all_read=io_config.boundedStreamConfig is not None and bounded_progress(supervisor).left == 0,
        waits_for_pattern_tasks=bool(supervisor.pattern_asked) and not topic_supervisors.end_children(supervisor),
    )


def _task_count(supervisor: Supervisor) -> int:
    """How many indexers its task has: of one that reads given offsets, no more than it has partitions to read."""
    io_config = supervisor.io_config
    wanted = wanted_task_count(io_config, supervisor.decided_task_count)
    return wanted if io_config.boundedStreamConfig is None else min(wanted, max(1, len(ranges_of(io_config))))


def _version_in_force(supervisor: Supervisor, tasks: list[TaskSnapshot]) -> int | None:
    """The version whose tasks were the last to begin, also since the last round, though it is current no more."""
    in_force = supervisor.in_force or 0
    newer = [t for t in tasks if t.has_begun_reading and t.active and t.goal_is_run and in_force < t.spec_version]
    newer = [t for t in newer if t.spec_version != supervisor.version]
    switched_at = supervisor.last_switched_at if newer else None
    return (
        max([in_force, *(t.spec_version for t in newer if switched_at is None or t.created_at > switched_at)]) or None
    )


def _last_good(supervisor: Supervisor, in_force: int | None) -> LastGood | None:
    """Of a current version that has not begun: the one that was in force before, if it asks for other work."""
    if in_force in (None, supervisor.version):
        return None
    before, current = supervisor.versions.get(version=in_force), supervisor.current
    if (without_scaling(before.spec), before.secrets) == (without_scaling(current.spec), current.secrets):
        return None
    return LastGood(before.version, before.io_config.replicas)


def _thresholds() -> Thresholds:
    return Thresholds(
        unhealthiness=settings.SUPERVISOR_UNHEALTHINESS_THRESHOLD,
        healthiness=settings.SUPERVISOR_HEALTHINESS_THRESHOLD,
        task_unhealthiness=settings.SUPERVISOR_TASK_UNHEALTHINESS_THRESHOLD,
        task_healthiness=settings.SUPERVISOR_TASK_HEALTHINESS_THRESHOLD,
    )


def _update_partitions(supervisor: Supervisor, tasks: list[Task]) -> None:
    """The watch over a running task sees added partitions before the next iteration does.

    Not for a bounded read: it reads no others than those that it was given.
    """
    for task in tasks:
        observation = task.observation
        if task.status == Status.RUNNING and task.spec_version == supervisor.version and not observation.get("error"):
            if observation.get("topic_exists") and not task.is_bounded:
                topic_checks.update_partitions(supervisor, observation["partitions"])
            return


def _same_but_for_task_count(supervisor: Supervisor, current: SpecVersion, tasks: list[Task]) -> frozenset[int]:
    """The older versions of tasks that run which ask for this one's work, with more or fewer indexers."""
    older = {t.spec_version for t in tasks if not t.ended and t.spec_version is not None} - {current.version}
    if not older or current.io_config.traits.assigns_by_number:
        return frozenset()
    current_work = (without_scaling(current.spec), current.secrets)
    versions = supervisor.versions.filter(version__in=older)
    return frozenset(v.version for v in versions if (without_scaling(v.spec), v.secrets) == current_work)


def apply(supervisor: Supervisor, decision: Decision) -> None:
    """Carry out a decision; the supervisor's row is locked and saved by the caller."""
    # First what takes the pool's lock: a launch takes it before a task's row, too.
    for pk, indexers in decision.scale.items():
        capacity.scale(pk, indexers)
    for task in Task.objects.filter(pk__in=decision.finish):
        set_goal(task, Goal.FINISH)
    _start_tasks(supervisor, supervisor.current, decision.start, decision.group)
    if decision.restart and decision.in_force is not None:
        good_version = supervisor.versions.get(version=decision.in_force)
        _start_tasks(supervisor, good_version, decision.restart, decision.restart_group)
    if supervisor.detailed_state != decision.detailed_state:
        datasource = supervisor.datasource
        notify_pages(Change(team=datasource.team_id, datasource=datasource.name, supervisor=supervisor.pk, urgent=True))
    supervisor.detailed_state = decision.detailed_state
    supervisor.failures = decision.failures
    supervisor.next_start_at = decision.next_start_at
    supervisor.steady |= decision.detailed_state == Detail.RUNNING
    supervisor.in_force = decision.in_force
    supervisor.recent_errors = _recent_errors(supervisor)


def _start_tasks(supervisor: Supervisor, version: SpecVersion, number: int, group: str) -> None:
    """So many tasks of a version of its spec. ``group``: the replica group that they join; empty: a new one."""
    if not number:
        return
    spec = parse_supervisor_spec(version.spec)
    task_count = wanted_task_count(version.io_config, supervisor.decided_task_count)
    if spec.spec.ioConfig.replicas > 1:
        group = group or task_id("replicas", spec.datasource, timezone.now())
    for _ in range(number):
        create_task(
            datasource=supervisor.datasource,
            spec=spec.task_spec(task_count),
            supervisor_id=supervisor.pk,
            spec_version=version.version,
            sealed=version.secrets,
            user=version.created_by,
            replica_group=group,
            topic_missed=supervisor.topic_missed == version.io_config.topic,
            accepted_at=start_accepted_at(version),
            shares_application=small_topics.may_share(supervisor, version),
        )


def _active_tasks(supervisor: Supervisor) -> QuerySet[Task, str]:
    return Task.objects.active().filter(supervisor_id=supervisor.pk).values_list("pk", flat=True)


def _recent_errors(supervisor: Supervisor) -> list[dict[str, object]]:
    """Of iterations, of tasks, and of running ones' indexers that fail over and over; the newest first."""
    most = settings.SUPERVISOR_MAX_STORED_EXCEPTION_EVENTS
    stopped_early = Q(launched_at=None) & ~Q(goal=Goal.RUN)  # told to stop before it was launched: no failure
    failed = Task.objects.filter(supervisor_id=supervisor.pk, status=Status.FAILED).exclude(stopped_early)
    failed = failed.only("id", "ended_at", "error")[:most]
    task_errors = [
        {
            "at": t.ended_at.isoformat() if t.ended_at else "",
            "class": "TaskFailed",
            "message": t.error[: topic_checks.MESSAGE_LENGTH],
            "stream": False,
            "task": t.pk,
        }
        for t in failed
    ]
    failing = SourceEvent.objects.filter(kind=SourceEvent.Kind.FAILING, task_id__in=_active_tasks(supervisor))[:most]
    indexer_errors = [
        {
            "at": e.created_at.isoformat(),
            "class": "IndexerFailing",
            "message": e.detail[: topic_checks.MESSAGE_LENGTH],
            "stream": False,
            "task": e.task_id,
        }
        for e in failing
    ]
    return sorted([*supervisor.run_errors, *task_errors, *indexer_errors], key=lambda e: str(e["at"]), reverse=True)[
        :most
    ]
