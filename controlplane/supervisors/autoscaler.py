"""The autoscaler at work: what it observes, and what becomes of its decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from controlplane.lag.series import lag_samples
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors.autoscale import (
    LagObservation,
    Reason,
    Scaling,
    Verdict,
    is_due,
    judge,
    starts_at,
    wanted_task_count,
    window_start,
)
from controlplane.supervisors.health_messages import utc
from controlplane.supervisors.models import ScaleAction, Supervisor
from controlplane.tasks.models import Goal, Task
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig

ACTIONS_KEPT = 1000


def scale_if_due(supervisor: Supervisor) -> None:
    """Let the autoscaler decide, if it is time to; the supervisor's row is locked and saved by the caller."""
    io_config = supervisor.io_config
    config = io_config.auto_scaler
    if config is None or supervisor.suspended or supervisor.terminated_at is not None:
        supervisor.scaling_reason = supervisor.scaling_text = ""
        return
    source = sources_of(supervisor.datasource_id, io_config, supervisor.owner).filter(current=True).last()
    if source is None:
        _note(supervisor, Verdict(Reason.LAG_UNKNOWN, "It has not read its topic yet."))
        return
    observed = _observe(supervisor, config, source, wanted_task_count(io_config, supervisor.decided_task_count))
    if not is_due(observed):
        if observed.now < starts_at(observed):
            _note(supervisor, Verdict(Reason.START_DELAY, f"It first checks the lag at {utc(starts_at(observed))}."))
        return
    supervisor.scaling_checked_at = observed.now
    aggregate = config.lagAggregate or "SUM"
    samples = lag_samples(source, since=window_start(observed), until=observed.now, aggregate=aggregate)
    verdict = judge(replace(observed, samples=samples))
    _note(supervisor, verdict)
    if verdict.scaling is not None:
        supervisor.decided_task_count = verdict.scaling.after
        _store_action(supervisor, verdict.scaling)


def _note(supervisor: Supervisor, verdict: Verdict) -> None:
    supervisor.scaling_reason, supervisor.scaling_text = verdict.reason.value, verdict.text


@dataclass(frozen=True)
class AutoScaler:
    """An autoscaler as it is shown: its bounds, what it did last, and what its last check came to."""

    min_tasks: int
    max_tasks: int
    last_action: ScaleAction | None
    reason: str  # empty: it has not checked the lag yet, or its supervisor is suspended
    text: str
    checked_at: datetime | None


def auto_scaler(supervisor: Supervisor) -> AutoScaler | None:
    """None if there is none, or it is not enabled."""
    config = supervisor.io_config.auto_scaler
    if config is None:
        return None
    least, most = config.bounds
    reason, text = supervisor.scaling_reason, supervisor.scaling_text
    return AutoScaler(least, most, last_action(supervisor), reason, text, supervisor.scaling_checked_at)


def task_count(supervisor: Supervisor) -> int:
    """How many indexers it wants."""
    return wanted_task_count(supervisor.io_config, supervisor.decided_task_count)


def replicas(supervisor: Supervisor) -> int:
    """How many tasks it keeps, each with so many indexers."""
    return supervisor.io_config.replicas


def last_action(supervisor: Supervisor) -> ScaleAction | None:
    """What its autoscaler did last."""
    return supervisor.scale_actions.first()


def _observe(supervisor: Supervisor, config: AutoScalerConfig, source: Source, count: int) -> LagObservation:
    """All but the samples, which need not be read when it is not time yet."""
    last = last_action(supervisor)
    tasks = list(Task.objects.active().reading().filter(supervisor_id=supervisor.pk).prefetch_related("indexers"))
    return LagObservation(
        now=timezone.now(),
        config=config,
        task_count=count,
        since=supervisor.scaling_since,
        last_action_at=last.at if last else None,
        last_check_at=supervisor.scaling_checked_at,
        partitions=source.keys.count() if source.progress.keeps_offsets else None,
        steady=_is_steady(tasks),
        granted=all(t.indexers_wanted >= count for t in tasks),
    )


def _is_steady(tasks: list[Task]) -> bool:
    reads = any(i.state in ("reading", "refused") for t in tasks for i in t.indexers.all())
    return reads and all(t.goal == Goal.RUN for t in tasks)


def _store_action(supervisor: Supervisor, action: Scaling) -> None:
    now = timezone.now()
    ScaleAction.objects.create(
        supervisor=supervisor, at=now, before=action.before, after=action.after, reason=action.reason
    )
    older = supervisor.scale_actions.values_list("pk", flat=True)[ACTIONS_KEPT:]
    ScaleAction.objects.filter(pk__in=list(older)).delete()
