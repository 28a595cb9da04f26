"""Supervisors with a ``boundedStreamConfig``: how far the offsets that they read are settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from controlplane.supervisors.health_facts import HealthFacts
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from controlplane.tasks.bounded_reads import BoundedProgress, BoundedRead, progress_of_reads, ranges_of, rate_of
from controlplane.tasks.diagnosis import held_back
from controlplane.tasks.models import Status, Task


def bounded_progress(supervisor: Supervisor) -> BoundedProgress:
    """By what is settled now; the rate is that of its running task."""
    return bounded_progresses([supervisor])[supervisor.pk]


def bounded_progresses(supervisors: Iterable[Supervisor]) -> dict[str, BoundedProgress]:
    """By supervisor, of those with a ``boundedStreamConfig``: three statements for all of them."""
    reads = _reads([s for s in supervisors if s.io_config.boundedStreamConfig is not None])
    return dict(zip(reads, progress_of_reads(list(reads.values())), strict=True))


def _reads(supervisors: Sequence[Supervisor]) -> dict[str, BoundedRead]:
    """By supervisor."""
    if not supervisors:
        return {}
    pks = [s.pk for s in supervisors]
    tasks = Task.objects.filter(supervisor_id__in=pks, kind=Task.Kind.BOUNDED, status=Status.RUNNING)
    rates = {t.supervisor_id: rate_of(t) for t in tasks.only("supervisor_id", "status", "observation")}
    return {
        s.pk: BoundedRead(s.datasource_id, s.io_config, s.owner, ranges_of(s.io_config), rates.get(s.pk))
        for s in supervisors
    }


def bounded_facts(supervisor: Supervisor, observation: Mapping[str, Any]) -> dict[str, Any]:
    """What health is told of such a supervisor, by the observation of its task; nothing of others."""
    if supervisor.io_config.boundedStreamConfig is None:
        return {}
    reasons = held_back(observation)
    progress = bounded_progress(supervisor)
    return {"bounded": progress, "fills": supervisor.fills_id, "held_back": reasons[0] if reasons else None}


def with_filling(facts: Mapping[str, HealthFacts]) -> dict[str, HealthFacts]:
    """By supervisor, with how far their backfills are. What several of them read counts once."""
    not_suspended = Supervisor.objects.filter(fills__in=list(facts), terminated_at=None, suspended=False)
    backfills = not_suspended.exclude(detailed_state=Detail.COMPLETED).order_by("pk").with_current()
    reads, of_topics = _reads(backfills), dict[tuple[str, str], BoundedRead]()
    for backfill in backfills:
        read = reads[backfill.pk]
        key = (backfill.fills_id or "", read.topic_id)
        of_topics[key] = of_topics[key].joined(read) if key in of_topics else read
    filling: dict[str, BoundedProgress] = {}
    for (pk, _), progress in zip(of_topics, progress_of_reads(list(of_topics.values())), strict=True):
        filling[pk] = filling[pk] + progress if pk in filling else progress
    return {pk: replace(one, filling=filling[pk]) if pk in filling else one for pk, one in facts.items()}
