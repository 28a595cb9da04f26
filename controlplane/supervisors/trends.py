"""The last hour of many supervisors at once: how far each was behind, and how many rows a second it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.lag.models import LagSample
from controlplane.lag.rates import per_second
from controlplane.lag.samples import source_starts
from controlplane.supervisors.health_queries import sources_read_by
from controlplane.supervisors.models import Supervisor

MINUTES = 60
_FRESH_MINUTES = 3  # what was seen longer ago is no "now"
_LONGEST_GAP = timedelta(minutes=3)  # where nobody looked for longer, no rate is known


@dataclass(frozen=True)
class Trend:
    """By minute, the oldest first; None where nobody looked."""

    lag: list[float | None]
    rows_per_s: list[float | None]

    @property
    def rate_now(self) -> float | None:
        rates = [value for value in self.rows_per_s[-_FRESH_MINUTES:] if value is not None]
        return rates[-1] if rates else None

    @property
    def grows(self) -> bool:
        """Whether it is behind by more than a quarter of an hour ago, and by something worth a look."""
        lags = [value for value in self.lag if value is not None]
        return len(lags) > 15 and lags[-1] > max(1000, 1.2 * lags[-15])


def trends(supervisors: Sequence[Supervisor]) -> dict[str, Trend]:
    """By supervisor: of those that have read something. Three statements, however many they are."""
    sources = sources_read_by(supervisors)
    since = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1)
    samples: dict[int, list[LagSample]] = {}
    recent = LagSample.objects.filter(
        source__in=[source.pk for source in sources.values()], resolution_s=60, at__gte=since
    )
    for sample in recent.order_by("at").only("source_id", "at", "observed_at", "lag", "processed"):
        samples.setdefault(sample.source_id, []).append(sample)
    began = source_starts(source.pk for source in sources.values())
    return {pk: _trend(samples.get(source.pk, []), since, began.get(source.pk)) for pk, source in sources.items()}


def _trend(samples: Sequence[LagSample], since: datetime, began: datetime | None) -> Trend:
    lag: list[float | None] = [None] * MINUTES
    rate: list[float | None] = [None] * MINUTES
    rates = per_second([(sample.observed_at, sample.processed) for sample in samples], _LONGEST_GAP, began)
    for sample, per_s in zip(samples, rates, strict=True):
        minute = int((sample.at - since).total_seconds() // 60)
        if 0 <= minute < MINUTES:
            lag[minute], rate[minute] = sample.lag, per_s
    return Trend(lag, rate)
