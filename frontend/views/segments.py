"""A datasource's segments: the timeline's data, its intervals and the files as tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render

from controlplane.common.errors import InvalidInput
from controlplane.segments.selectors import Timeline, list_segments
from controlplane.segments.selectors import timeline as segment_timeline
from controlplane.tasks.datasources import get_datasource
from frontend.paging import keyset_page, numbered_page
from frontend.views.common import PageRequest, asked_time, page
from frontend.views.datasources import frame

INTERVALS_PER_PAGE = 100
SEGMENT_ORDER = ("-interval_start", "-partition_num", "-id")
NARROWEST, WIDEST = 100, 4000


@page
def timeline(request: PageRequest, name: str) -> HttpResponse:
    """The bars between ``from`` and ``to`` for a drawing ``width`` pixels wide; times in ms since 1970."""
    datasource = get_datasource(request.user, name)
    try:
        start, end = asked_time(request, "from"), asked_time(request, "to")
        width = min(max(int(request.GET.get("width", "1000")), NARROWEST), WIDEST)
        timeline = segment_timeline(datasource, start=start, end=end, width=width)
    except ValueError as error:
        return JsonResponse({"detail": str(error)}, status=400)
    except InvalidInput as error:
        return JsonResponse({"detail": error.detail}, status=400)
    return JsonResponse(_as_json(timeline))


def _as_json(timeline: Timeline) -> dict[str, Any]:
    bars = [[_ms(b.start), _ms(b.end), b.rows, b.segments, b.size_bytes, b.intervals] for b in timeline.bars]
    return {"bars": bars, "rows": timeline.total_rows, "merged": timeline.merged}


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@page
def intervals(request: PageRequest, name: str) -> HttpResponse:
    """The timeline as a table."""
    datasource = get_datasource(request.user, name)
    timeline = segment_timeline(datasource, start=None, end=None)
    rows = numbered_page(timeline.bars[::-1], request.GET.get("page"), INTERVALS_PER_PAGE)
    context = {**frame(request, datasource, "intervals"), "page": rows, "timeline": timeline}
    return render(request, "datasources/intervals.html", context)


@page
def segments(request: PageRequest, name: str) -> HttpResponse:
    """The files, newest interval first; of one interval with ``from`` and ``to``."""
    datasource = get_datasource(request.user, name)
    start, end = _asked_interval(request)
    segments = list_segments(datasource, interval_start=start, interval_end=end)
    rows = keyset_page(segments, SEGMENT_ORDER, request.GET.get("cursor"))
    context = {**frame(request, datasource, "segments"), "page": rows, "start": start, "end": end}
    return render(request, "datasources/segments.html", context)


def _asked_interval(request: PageRequest) -> tuple[datetime | None, datetime | None]:
    try:
        return asked_time(request, "from"), asked_time(request, "to")
    except ValueError as error:
        messages.warning(request, f"All segments are shown: {error}.")
        return None, None
