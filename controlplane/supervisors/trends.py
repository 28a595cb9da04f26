"""The last hour of many supervisors at once: how far each was behind, and how many rows a second it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.segments.models import LagSample, Source
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.sources import key_of

MINUTES = 60
_FRESH_MINUTES = 3  # what was seen longer ago is no "now"


@dataclass(frozen=True)
class Trend:
    """By minute, the oldest first; None where nobody looked."""

    lag: list[float | None]
    rows_per_s: list[float | None]

    @property
    def lag_now(self) -> int | None:
        known = [value for value in self.lag[-_FRESH_MINUTES:] if value is not None]
        return int(known[-1]) if known else None

    @property
    def rate_now(self) -> float | None:
        known = [value for value in self.rows_per_s[-_FRESH_MINUTES:] if value is not None]
        return known[-1] if known else None

    @property
    def grows(self) -> bool:
        """Whether it is behind by more than a quarter of an hour ago, and by something worth a look."""
        known = [value for value in self.lag if value is not None]
        return len(known) > 15 and known[-1] > max(1000, 1.2 * known[-15])


def trends(supervisors: Sequence[Supervisor]) -> dict[str, Trend]:
    """By supervisor: of those that have read something. Two statements, however many they are."""
    sources = _sources(supervisors)
    since = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1)
    samples: dict[int, list[tuple[datetime, int, int]]] = {}
    found = LagSample.objects.filter(source__in=sources.values(), resolution_s=60, at__gte=since)
    for source, at, lag, processed in found.order_by("at").values_list("source_id", "at", "lag", "processed"):
        samples.setdefault(source, []).append((at, lag, processed))
    return {pk: _trend(samples.get(source, []), since) for pk, source in sources.items()}


def _sources(supervisors: Sequence[Supervisor]) -> dict[str, int]:
    """What each reads now: the one that was looked at last."""
    current = Source.objects.filter(datasource__in={s.datasource_id for s in supervisors}, current=True)
    by_key = {
        (s.datasource_id, s.kind, s.group, s.topic): s.pk for s in current.order_by("looked_at", "id").defer("bounds")
    }
    found = {}
    for one in supervisors:
        key = key_of(one.io_config, one.pk)
        source = by_key.get((one.datasource_id, key["kind"], key["group"], one.io_config.topic))
        if source is not None:
            found[one.pk] = source
    return found


def _trend(samples: list[tuple[datetime, int, int]], since: datetime) -> Trend:
    lag: list[float | None] = [None] * MINUTES
    rate: list[float | None] = [None] * MINUTES
    before: tuple[datetime, int] | None = None
    for at, behind, processed in samples:
        minute = int((at - since).total_seconds() // 60)
        if 0 <= minute < MINUTES:
            lag[minute] = behind
            if before is not None and at - before[0] <= timedelta(minutes=3):
                rate[minute] = max(0, processed - before[1]) / (at - before[0]).total_seconds()
        before = at, processed
    return Trend(lag, rate)
