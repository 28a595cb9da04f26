"""A supervisor's lag: the chart's data, and the same as tables."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone

from controlplane.lag.samples import RESOLUTIONS
from controlplane.lag.series import LagSeries
from controlplane.supervisors.lag import lag_now, lag_over_time
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import get_supervisor
from controlplane.supervisors.timeline_annotations import list_annotations
from controlplane.supervisors.unread_times import countdown_of
from frontend.chart_windows import WINDOWS, Window, window_named
from frontend.paging import numbered_page
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, page
from frontend.views.supervisors import frame

PARTITIONS = Shape(
    "lag-by-partition",
    (
        Column("partition", "Partition", sorts="partition", number=True, fixed=True),
        Column("end", "Log end", sorts="end_offset", number=True, descending_first=True),
        Column("stored", "Stored offset", sorts="next_offset", number=True, descending_first=True),
        Column("settled", "Settled", sorts="settled", number=True, descending_first=True),
        Column("upto", "Settled up to", sorts="settled_upto", number=True, descending_first=True),
        Column("lag", "Lag", sorts="lag", number=True, descending_first=True),
        Column("expires", "Kept until"),
        Column("looked", "Observed", sorts="observed_at", descending_first=True),
    ),
    default="-lag",
    tie_breakers=("partition",),
)
SAMPLES = Shape(
    "lag-over-time",
    (
        Column("from", "From", sorts="at", descending_first=True, fixed=True),
        Column("lag", "Largest lag", sorts="lag", number=True, descending_first=True),
        Column("held", "Held by indexers", sorts="in_flight", number=True, descending_first=True),
        Column("rate", "Rows/s", sorts="processed_per_s", number=True, descending_first=True),
        Column("again", "Redelivered/s", sorts="redelivered_per_s", number=True, descending_first=True),
    ),
    default="-from",
    tie_breakers=("-at",),
    key="samples_sort",
)
PARTITIONS_PER_PAGE = 100
POINTS_SHOWN = 200


@page
def data(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """The points of a window for the chart; times in ms since 1970."""
    supervisor, window = get_supervisor(request.user, supervisor_id), window_named(request.GET.get("window"))
    series = _series(supervisor, window, _partition(request.GET.get("partition", "")))
    seconds = next(r.seconds for r in RESOLUTIONS if r.name == series.resolution)
    points = [[_ms(p.at), p.lag, p.in_flight, p.processed_per_s, p.redelivered_per_s] for p in series.points]
    marks = [[_ms(mark.at), mark.kind] for mark in list_annotations(supervisor, series.start, series.end)]
    return JsonResponse(
        {
            "start": _ms(series.start),
            "end": _ms(series.end),
            "resolution": seconds * 1000,
            "points": points,
            "marks": marks,
        }
    )


@page
def tables(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """The lag by partition now, and all of it over time."""
    supervisor = get_supervisor(request.user, supervisor_id)
    unread = countdown_of(supervisor)
    now, window = lag_now(supervisor), window_named(request.GET.get("window"))
    table, samples = _partitions_shape(supervisor).table_for(request.GET), SAMPLES.table_for(request.GET)
    points = samples.arranged(_series(supervisor, window).points)
    context = {
        **frame(request, supervisor, "lag"),
        "lag": now,
        "unread": unread,
        "table": table,
        "samples": samples,
        "page": numbered_page(table.arranged(now.partitions), request.GET.get("page"), PARTITIONS_PER_PAGE),
        "windows": WINDOWS,
        "chosen": window,
        "marks": list_annotations(supervisor, timezone.now() - window.length, timezone.now())[::-1],
        "points": points[:POINTS_SHOWN],
        "total": len(points),
        "more": len(points) > POINTS_SHOWN,
    }
    return render(request, "supervisors/lag.html", context)


def _series(supervisor: Supervisor, window: Window, partition: int | None = None) -> LagSeries:
    now = timezone.now()
    return lag_over_time(supervisor, start=now - window.length, end=now, partition=partition)


def _partition(text: str) -> int | None:
    """None for all of them, and for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else None


def _partitions_shape(supervisor: Supervisor) -> Shape:
    """A share group has no stored offsets."""
    return PARTITIONS if supervisor.io_config.traits.keeps_offsets else PARTITIONS.without_columns("stored")


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
