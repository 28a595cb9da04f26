"""How far a supervisor is behind its topic: now, by partition, and over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from controlplane.segments.models import Source
from controlplane.segments.selectors import LagSeries, PartitionProgress, lag_series, progress
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import current_tasks
from controlplane.tasks.models import Status, Task
from controlplane.tasks.sources import sources_of

STALE_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class LagNow:
    """``lag``: offsets that are not settled, as far as they were seen at ``observed_at``; None if they never were.

    ``problem``: why they are not known, or not as of now; empty when they are. ``in_flight``: records that indexers
    hold. ``partitions``: by number.
    """

    lag: int | None
    observed_at: datetime | None
    problem: str
    in_flight: int
    partitions: list[PartitionProgress]


def lag_now(supervisor: Supervisor) -> LagNow:
    """Of the topic that is read now; one that was deleted does not count."""
    tasks = current_tasks(supervisor)
    found = [p for source in sources_read(supervisor).filter(current=True) for p in progress(source)]
    known = [p.lag for p in found if p.lag is not None]
    seen = [p.observed_at for p in found if p.observed_at is not None]
    observed_at = max(seen, default=None)
    return LagNow(
        lag=sum(known) if known else None,
        observed_at=observed_at,
        problem=_problem(tasks[0] if tasks else None, observed_at),
        in_flight=sum(i.in_flight for t in tasks for i in t.indexers.all()),
        partitions=sorted(found, key=lambda p: p.partition),
    )


def lag_over_time(supervisor: Supervisor, **window: Any) -> LagSeries:
    """See ``lag_series``. Raises ``InvalidInput``."""
    return lag_series(sources_read(supervisor), **window)


def sources_read(supervisor: Supervisor) -> QuerySet[Source]:
    """What its current spec reads, topics that are gone too."""
    version = supervisor.versions.get(version=supervisor.version)
    return sources_of(supervisor.datasource_id, version.spec["spec"]["ioConfig"], supervisor.pk)


def _problem(task: Task | None, observed_at: datetime | None) -> str:
    if task is None or task.status != Status.RUNNING:
        return "No task runs, and only then is the topic looked at."
    error = task.observation.get("error")
    if error:
        return f"Kafka can't be reached: {error}"
    if task.observation.get("topic_exists") is False:
        return "There is no such topic, or this user may not see it."
    if observed_at is None:
        return "The topic has not been looked at yet; this takes a few seconds."
    if timezone.now() - observed_at > STALE_AFTER:
        return "The topic has not been looked at for more than a minute. Do the worker and beat run?"
    return ""
