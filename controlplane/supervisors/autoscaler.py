"""The autoscaler at work: what it observes, and what becomes of its decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils import timezone

from controlplane.lag.series import lag_samples
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors.autoscale import (
    LagObservation,
    Scaling,
    autoscale,
    is_due,
    wanted_task_count,
    window_start,
)
from controlplane.supervisors.models import ScaleAction, Supervisor
from controlplane.tasks.models import Goal, Task
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig

ACTIONS_KEPT = 1000


def scale_if_due(supervisor: Supervisor) -> None:
    """Let the autoscaler decide, if it is time to; the supervisor's row is locked and saved by the caller."""
    if supervisor.suspended or supervisor.terminated_at is not None:
        return
    io_config = supervisor.io_config
    config = io_config.auto_scaler
    if config is None:
        return
    source = sources_of(supervisor.datasource_id, io_config, supervisor.owner).filter(current=True).last()
    if source is None:
        return
    observed = _observe(supervisor, config, source, wanted_task_count(io_config, supervisor.decided_task_count))
    if not is_due(observed):
        return
    supervisor.scaling_checked_at = observed.now
    aggregate = config.lagAggregate or "SUM"
    samples = lag_samples(source, since=window_start(observed), until=observed.now, aggregate=aggregate)
    action = autoscale(replace(observed, samples=samples))
    if action is not None:
        supervisor.decided_task_count = action.after
        _store_action(supervisor, action)


@dataclass(frozen=True)
class AutoScaler:
    """An autoscaler as it is shown: its bounds, and what it did last."""

    min_tasks: int
    max_tasks: int
    last_action: ScaleAction | None


def auto_scaler(supervisor: Supervisor) -> AutoScaler | None:
    """None if there is none, or it is not enabled."""
    config = supervisor.io_config.auto_scaler
    return None if config is None else AutoScaler(*config.bounds, last_action(supervisor))


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
