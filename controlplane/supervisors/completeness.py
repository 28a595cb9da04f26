"""Until when a datasource is complete, by the supervisors that fill it.

What a look at a topic proves is worked out in ``publishing.completeness``. A datasource is as complete as that
reader of it which is furthest behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Max
from django.utils import timezone

from controlplane.compaction.models import OPEN, Job, State
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence
from controlplane.quarantine.selectors.causes import recently_quarantined
from controlplane.segments.selectors.timeline import Ongoing
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.lag import STALE_AFTER
from controlplane.supervisors.models import Supervisor


@dataclass(frozen=True)
class Reader:
    """One supervisor that fills the datasource."""

    supervisor: Supervisor
    source: Source | None  # what it reads now; None before its first task has begun

    @property
    def complete_until(self) -> datetime | None:
        return self.source.complete_until if self.source else None

    @property
    def observed_at(self) -> datetime | None:
        return self.source.looked_at if self.source else None

    @property
    def topic(self) -> str:
        return self.supervisor.io_config.reads

    @property
    def problem(self) -> str:
        """Why its part is not known, or no longer moves; empty while it does."""
        if self.supervisor.lacks_topic:
            return f"There is no topic {self.topic!r}, or its login has no permission to see it."
        if self.source is None:
            return "It has not read any record yet."
        if self.observed_at is None or timezone.now() - self.observed_at > STALE_AFTER:
            return "Headgate has not checked its topic for more than a minute."
        if self.supervisor.suspended:
            return "It is suspended, so it does not read its topic."
        return "" if self.complete_until else "It has not caught up with its topic yet."


@dataclass(frozen=True)
class Completeness:
    """What is known of one datasource."""

    # All that the topics of all readers held before it has ended; None while that is not known.
    complete_until: datetime | None
    readers: list[Reader]
    last_publish_at: datetime | None
    quarantined: int = 0  # records of the last day that wait in quarantine: they have ended, and are no rows

    @property
    def observed_at(self) -> datetime | None:
        """When the topic that was looked at the longest ago was."""
        times = [r.observed_at for r in self.readers]
        return min((t for t in times if t is not None), default=None) if None not in times else None

    @property
    def reason(self) -> str:
        """Why it is not known, or no longer moves; empty while it does."""
        if not self.readers:
            return "No supervisor writes to this datasource. Headgate does not track what manual tasks leave unread."
        return " ".join(f"{r.supervisor.pk}: {r.problem}" for r in self.readers if r.problem)


def completeness(datasource: Datasource) -> Completeness:
    """Of one datasource. The caller has made sure that the user may see it."""
    return completeness_of([datasource])[datasource.pk]


def ongoing(datasource: Datasource) -> Ongoing:
    """What still changes its intervals, for its timeline. The caller has made sure that the user may see it."""
    status = completeness(datasource)
    jobs = Job.objects.filter(datasource=datasource, state__in=OPEN).order_by().distinct()
    merges = list(jobs.values_list("state", "interval_start", "interval_end"))
    return Ongoing(
        status.complete_until,
        followed=bool(status.readers),
        compacting=[(start, end) for state, start, end in merges if state == State.RUNNING],
        awaiting=[(start, end) for state, start, end in merges if state == State.WAITING],
    )


def completeness_of(datasources: Iterable[Datasource]) -> dict[int, Completeness]:
    """By the datasource's key, in as many queries for a thousand of them as for one."""
    keys = [d.pk for d in datasources]
    readers = _readers(keys)
    fences = IndexerFence.objects.filter(datasource__in=keys).order_by()
    last_publishes = dict(fences.values_list("datasource").annotate(Max("last_publish_at")))
    quarantined = recently_quarantined(keys)
    return {key: _combined(readers.get(key, []), last_publishes.get(key), quarantined.get(key, 0)) for key in keys}


def _combined(readers: list[Reader], last_publish_at: datetime | None, quarantined: int) -> Completeness:
    times = [r.complete_until for r in readers]
    until = None if None in times else min((t for t in times if t is not None), default=None)
    return Completeness(until, readers, last_publish_at, quarantined)


def _readers(datasources: list[int]) -> Mapping[int, list[Reader]]:
    active = Supervisor.objects.filter(datasource__in=datasources, terminated_at=None, fills=None).order_by("id")
    sources = _current_sources(datasources)
    readers = defaultdict(list)
    for supervisor in active.with_current():
        if supervisor.io_config.topicPattern is not None and supervisor.topics_matched:
            continue  # those that read its topics for it stand here instead
        readers[supervisor.datasource_id].append(Reader(supervisor, sources.get(_source_key(supervisor))))
    return readers


def _source_key(supervisor: Supervisor) -> tuple[int, str, str, str]:
    key = source_key(supervisor.io_config, supervisor.owner)
    return supervisor.datasource_id, key["kind"], key["group"], supervisor.io_config.topic


def _current_sources(datasources: list[int]) -> dict[tuple[int, str, str, str], Source]:
    """Of several clusters' topics of one name, that which was looked at last."""
    current = Source.objects.filter(datasource__in=datasources, current=True).defer("bounds", "marks")
    by_look = current.order_by(F("looked_at").asc(nulls_first=True), "pk")
    return {(s.datasource_id, s.kind, s.group, s.topic): s for s in by_look}
