"""The series of a source's lag, as charts and the autoscaler read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import BigIntegerField, F, Func, QuerySet
from django.db.models.expressions import Combinable
from django.utils import timezone

from controlplane.common.errors import FieldError, InvalidInput
from controlplane.lag.models import LagSample
from controlplane.lag.rates import per_second
from controlplane.lag.samples import RESOLUTIONS, Resolution, retention_of, source_starts
from controlplane.sources.models import Source

MAX_POINTS = 3000
DEFAULT_WINDOW = timedelta(hours=1)
# Of the partitions' lags, as Druid has them; the average is of whole numbers.
_AGGREGATES = {"MAX": "max({})", "AVERAGE": "div(sum({0}), count({0}))"}
_AHEAD = "(v - coalesce(w, 0))"  # a partition's lag, without what its reader has passed
_LONGEST_GAP = 3  # samples further apart than this many stretches, and a minute, have no rate between them
_RATE_WINDOW = timedelta(minutes=1)  # what a rate is over


@dataclass(frozen=True)
class LagPoint:
    """One sample. Rates are over the minute before it, or since the sample before; see ``rates``."""

    at: datetime
    lag: int
    in_flight: int
    processed_per_s: float | None
    redelivered_per_s: float | None


@dataclass(frozen=True)
class LagSeries:
    """Half-open from ``start`` to ``end``; points in the order of time."""

    start: datetime
    end: datetime
    resolution: str
    points: list[LagPoint]


def lag_series(
    sources: QuerySet[Source],
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    resolution: str = "",
    partition: int | None = None,
    aggregate: str = "SUM",
    ahead: bool = False,
) -> LagSeries:
    """The lag of one reader (its topic may have been made again: then it has had more than one source).

    Without ``start`` the hour before ``end``; without ``end`` up to now; without ``resolution`` the finest that reaches
    back that far. With ``partition`` its lag alone, else the ``aggregate`` of all: SUM, MAX, AVERAGE. ``ahead``:
    without what lies before the stored offsets. Raises ``InvalidInput``.
    """
    now = timezone.now()
    end = end or now
    start = start or end - DEFAULT_WINDOW
    if start >= end:
        raise InvalidInput("The window is empty.", [FieldError("", "must be before to", "from")])
    chosen = _resolution_named(resolution, end - start) if resolution else resolution_for(start, end, now)
    samples = LagSample.objects.filter(source__in=sources, resolution_s=chosen.seconds, at__lt=end)
    before = samples.filter(at__gte=start - _RATE_WINDOW - _LONGEST_GAP * chosen.length)
    chosen_lag = _lag_value(partition, aggregate, ahead)
    rows = list(before.order_by("source_id", "at").defer("partitions", "passed").annotate(chosen=chosen_lag))
    points = [p for p in _points(rows, chosen) if p.at >= start]
    return LagSeries(start, end, chosen.name, sorted(points, key=lambda p: p.at))


def resolution_for(start: datetime, end: datetime, now: datetime) -> Resolution:
    """The finest resolution that is kept since ``start`` and makes no more than 3,000 points of the window."""
    for resolution in RESOLUTIONS[:-1]:
        if now - start <= retention_of(resolution) and _point_count(end - start, resolution) <= MAX_POINTS:
            return resolution
    return RESOLUTIONS[-1]


def lag_samples(
    source: Source, *, since: datetime, until: datetime, aggregate: str = "SUM"
) -> list[tuple[datetime, int]]:
    """(when, lag) of one source's samples in ``(since, until]``, in the order of time. ``aggregate``: of partitions.

    Without what lies before the stored offsets: backfills read that, and no indexer of the source's reader.
    """
    chosen = resolution_for(since, until, until)
    samples = LagSample.objects.filter(source=source, resolution_s=chosen.seconds)
    within = samples.filter(observed_at__gt=since, observed_at__lte=until).order_by("observed_at")
    lags = within.annotate(chosen=_lag_value(None, aggregate, True)).values_list("observed_at", "chosen")
    return [(at, lag or 0) for at, lag in lags]


def _lag_value(partition: int | None, aggregate: str, ahead: bool) -> Combinable:
    """A sample's lag that is meant; null where it has no partitions."""
    if partition is not None:
        return F(f"partitions__{partition}")
    if aggregate not in _AGGREGATES:
        return F("lag") - _over_partitions("coalesce(sum(w), 0)") if ahead else F("lag")
    return _over_partitions(_AGGREGATES[aggregate].format(_AHEAD if ahead else "v"))


def _over_partitions(expression: str) -> Func:
    template = f"(SELECT {expression} FROM unnest(%(expressions)s) AS p(v, w))"
    return Func(F("partitions"), F("passed"), template=template, output_field=BigIntegerField())


def _resolution_named(name: str, window: timedelta) -> Resolution:
    by_name = {r.name: r for r in RESOLUTIONS}
    if name not in by_name:
        raise _resolution_error(f"must be one of {', '.join(by_name)}")
    if _point_count(window, by_name[name]) > MAX_POINTS:
        raise _resolution_error(
            f"makes more than {MAX_POINTS:,} points: choose a coarser resolution or a shorter window"
        )
    return by_name[name]


def _resolution_error(message: str) -> InvalidInput:
    return InvalidInput("The query parameters have errors.", [FieldError("", message, "resolution")])


def _point_count(window: timedelta, resolution: Resolution) -> float:
    return window / resolution.length


def _points(rows: Sequence[LagSample], resolution: Resolution) -> list[LagPoint]:
    """``rows``: by source, each source's in the order of time."""
    by_source = {source: list(samples) for source, samples in groupby(rows, key=lambda row: row.source_id)}
    began = source_starts(by_source)
    # A rate over a minute needs no more looks than its two.
    longest_gap = max(_LONGEST_GAP * resolution.length, _RATE_WINDOW)
    return [point for pk, samples in by_source.items() for point in _source_points(samples, longest_gap, began.get(pk))]


def _source_points(rows: Sequence[LagSample], longest_gap: timedelta, began: datetime | None) -> list[LagPoint]:
    processed = per_second([(row.observed_at, row.processed) for row in rows], longest_gap, began)
    redelivered = per_second([(row.observed_at, row.redelivered) for row in rows], longest_gap, began)
    return [
        LagPoint(row.at, getattr(row, "chosen", row.lag) or 0, row.in_flight, *rates)
        for row, *rates in zip(rows, processed, redelivered, strict=True)
    ]
