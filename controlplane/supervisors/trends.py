"""The last hour of many supervisors at once: how far each was behind, and how many rows a second it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.segments.models import LagSample
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.standings import sources_read_by

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
    sources = {pk: source.pk for pk, source in sources_read_by(supervisors).items()}
    since = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1)
    samples: dict[int, list[tuple[datetime, int, int]]] = {}
    found = LagSample.objects.filter(source__in=sources.values(), resolution_s=60, at__gte=since)
    for source, at, lag, processed in found.order_by("at").values_list("source_id", "at", "lag", "processed"):
        samples.setdefault(source, []).append((at, lag, processed))
    return {pk: _trend(samples.get(source, []), since) for pk, source in sources.items()}


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
