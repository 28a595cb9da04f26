"""Supervisors with a ``boundedStreamConfig``: how far the offsets that they read are settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controlplane.supervisors.health_facts import HealthFacts
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from controlplane.tasks.bounded_reads import BoundedProgress, progress_in, ranges_of, rate_of
from controlplane.tasks.diagnosis import held_back
from controlplane.tasks.models import Status, Task


def bounded_progress(supervisor: Supervisor) -> BoundedProgress:
    """By what is settled now; the rate is that of its running task."""
    io_config = supervisor.io_config
    running = Task.objects.filter(supervisor_id=supervisor.pk, kind=Task.Kind.BOUNDED, status=Status.RUNNING).first()
    rate = None if running is None else rate_of(running)
    return progress_in(supervisor.datasource_id, io_config, supervisor.owner, ranges_of(io_config), rate)


def bounded_facts(supervisor: Supervisor, observation: Mapping[str, Any]) -> dict[str, Any]:
    """What health is told of such a supervisor, by the observation of its task; nothing of others."""
    if supervisor.io_config.boundedStreamConfig is None:
        return {}
    reasons = held_back(observation)
    progress = bounded_progress(supervisor)
    return {"bounded": progress, "fills": supervisor.fills_id, "held_back": reasons[0] if reasons else None}


def with_filling(facts: Mapping[str, HealthFacts]) -> dict[str, HealthFacts]:
    """By supervisor, with how far their backfills are: one query, and two for each that is not done."""
    open_backfills = Supervisor.objects.filter(fills__in=list(facts), terminated_at=None, suspended=False)
    filling: dict[str, BoundedProgress] = {}
    for backfill in open_backfills.exclude(detailed_state=Detail.COMPLETED).order_by("pk").with_current():
        progress, before = bounded_progress(backfill), filling.get(backfill.fills_id or "", BoundedProgress(0, 0))
        rates = [rate for rate in (before.rate, progress.rate) if rate]
        both = BoundedProgress(before.total + progress.total, before.done + progress.done, sum(rates) or None)
        filling[backfill.fills_id or ""] = both
    return {pk: replace(one, filling=filling[pk]) if pk in filling else one for pk, one in facts.items()}
