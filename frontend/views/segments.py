"""A datasource's segments: the timeline's data, its intervals and the files as tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.gaps import Gap
from controlplane.segments.selectors.layers import LAYERS, Layer, layers
from controlplane.segments.selectors.lineage import merged_by_task
from controlplane.segments.selectors.lists import count_segments, list_segments
from controlplane.segments.selectors.timeline import Bar, Timeline
from controlplane.segments.selectors.timeline import timeline as segment_timeline
from controlplane.supervisors.completeness import ongoing
from controlplane.tasks.datasources import get_datasource
from frontend.filters import SegmentFilter
from frontend.paging import keyset_page, numbered_page
from frontend.tables import Column, Shape, Table
from frontend.views.common import PageRequest, page, read_time
from frontend.views.datasources import frame

Window = tuple[datetime | None, datetime | None]  # None where it has no bound

INTERVALS_PER_PAGE = 100
MAX_SORTED = 20_000  # what has no index takes a fraction of a second
LIST = Shape(
    "segments",
    (
        Column("interval", "Interval (UTC)", sorts="interval_start", fixed=True, descending_first=True),
        Column("number", "Number", number=True),
        Column("rows", "Rows", sorts="rows", number=True, descending_first=True),
        Column("size", "Size", sorts="size_bytes", number=True, descending_first=True),
        Column("times", "First to last row", sorts="min_time"),
        Column("published", "Published", sorts="created_at", descending_first=True),
        Column("late", "Late by", is_shown=False),
        Column("version", "Version", is_shown=False),
        Column("task", "Task"),
        Column("file", "File", is_shown=False),
    ),
    default="-interval",
    tie_breakers=("-partition_num", "-id"),
)
INTERVALS = Shape(
    "intervals",
    (
        Column("from", "From (UTC)", sorts="start", fixed=True, descending_first=True),
        Column("to", "To (UTC)"),
        Column("intervals", "Intervals", sorts="intervals", number=True, descending_first=True),
        Column("rows", "Rows", sorts="rows", number=True, descending_first=True),
        Column("segments", "Segments", sorts="segments", number=True, descending_first=True),
        Column("size", "Size", sorts="size_bytes", number=True, descending_first=True),
        Column("average", "Average size", sorts="average_bytes", number=True, descending_first=True),
        Column("state", "State", sorts="state"),
        Column("first_row", "First row", sorts="min_time", descending_first=True),
        Column("last_row", "Last row", sorts="max_time", descending_first=True),
        Column("version", "Version", sorts="version", descending_first=True, is_shown=False),
    ),
    default="-from",
    tie_breakers=("-start",),
)
LAYERS_AFTER = 7  # columns
NARROWEST, WIDEST = 100, 4000
LAYER_LABELS = {"unused": "Unused", "merged": "Merged", "late": "Late"}


@page
def timeline(request: PageRequest, name: str) -> HttpResponse:
    """The bars between ``from`` and ``to`` for a drawing ``width`` pixels wide; times in ms since 1970."""
    datasource = get_datasource(request.user, name)
    try:
        start, end = _read_window(request)
        width = min(max(int(request.GET.get("width", "1000")), NARROWEST), WIDEST)
        timeline = segment_timeline(datasource, start=start, end=end, width=width, ongoing=ongoing(datasource))
        shown_layers = layers(datasource, _read_layers(request), start=start, end=end)
    except ValueError as error:
        return JsonResponse({"detail": str(error)}, status=400)
    except InvalidInput as error:
        return JsonResponse({"detail": error.detail}, status=400)
    return JsonResponse(_as_json(timeline) | {"layers": {layer.name: _marks(layer) for layer in shown_layers}})


def _read_layers(request: PageRequest) -> list[str]:
    return [name for part in request.GET.getlist("layers") for name in part.split(",") if name]


def _marks(layer: Layer) -> list[list[int]] | None:
    """None where there are too many."""
    if layer.too_many:
        return None
    return [[_ms(m.start), _ms(m.end), m.segments, m.rows, m.size_bytes] for m in layer.marks]


def _as_json(timeline: Timeline) -> dict[str, Any]:
    bars = [
        [_ms(b.start), _ms(b.end), b.rows, b.segments, b.size_bytes, b.intervals, b.state, b.compacting, b.awaiting]
        for b in timeline.bars
    ]
    gaps = [[_ms(gap.start), _ms(gap.end)] for gap in timeline.gaps]
    return {"bars": bars, "rows": timeline.total_rows, "merged": timeline.merged, "gaps": gaps}


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@dataclass(frozen=True)
class IntervalLine:
    """A bar of the timeline as a row, with what each layer that is asked for has of it."""

    bar: Bar
    layers: list[tuple[str, int | None]]  # name, segments; None where there are too many
    gap: Gap | None  # that ends where it begins


@page
def intervals(request: PageRequest, name: str) -> HttpResponse:
    """The timeline between ``from`` and ``to`` as a table, with the layers that stand in the address."""
    datasource = get_datasource(request.user, name)
    start, end = _read_window(request)
    timeline = segment_timeline(datasource, start=start, end=end, ongoing=ongoing(datasource))
    layer_names = [layer for layer in LAYERS if layer in _read_layers(request)]
    table = _intervals_table(timeline, layer_names).table_for(request.GET)
    rows = numbered_page(table.arranged(timeline.bars), request.GET.get("page"), INTERVALS_PER_PAGE)
    context = {
        **frame(request, datasource, "intervals", **_window(start, end)),
        "page": rows,
        "lines": _interval_lines(datasource, list(rows), layer_names, timeline.gaps, (start, end)),
        "timeline": timeline,
        "start": start,
        "end": end,
        "layers": [(layer, LAYER_LABELS[layer], layer in layer_names) for layer in LAYERS],
        "table": table,
    }
    return render(request, "datasources/intervals.html", context)


def _intervals_table(timeline: Timeline, layer_names: list[str]) -> Shape:
    """With a column for each layer that is asked for."""
    before, after = INTERVALS.columns[:LAYERS_AFTER], INTERVALS.columns[LAYERS_AFTER:]
    layers = [
        Column(layer, LAYER_LABELS[layer], number=True, unsortable_reason="Counted for this page only")
        for layer in layer_names
    ]
    shape = replace(INTERVALS, columns=(*before, *layers, *after))
    return shape if timeline.merged else shape.without_columns("intervals")


def _interval_lines(
    datasource: Datasource, bars: list[Bar], layer_names: list[str], gaps: list[Gap], window: Window
) -> list[IntervalLine]:
    before = {gap.end: gap for gap in gaps}
    if not bars or not layer_names:
        return [IntervalLine(bar, [], before.get(bar.start)) for bar in bars]
    shown_layers = layers(
        datasource, layer_names, start=min(bar.start for bar in bars), end=max(bar.end for bar in bars)
    )
    return [
        IntervalLine(
            bar, [(layer.name, _count_within(layer, bar, window)) for layer in shown_layers], before.get(bar.start)
        )
        for bar in bars
    ]


def _count_within(layer: Layer, bar: Bar, window: Window) -> int | None:
    """How many segments a layer has of a bar, which may be of several intervals; both are cut to the window."""
    if layer.too_many:
        return None
    low, high = window
    starts_in = (m for m in layer.marks if (m.start if low is None else max(m.start, low)) >= bar.start)
    return sum(m.segments for m in starts_in if (m.end if high is None else min(m.end, high)) <= bar.end)


@page
def segments(request: PageRequest, name: str) -> HttpResponse:
    """The files, newest interval first; of one interval with ``from`` and ``to``."""
    datasource = get_datasource(request.user, name)
    start, end = _read_interval(request)
    table = _table(request, count_segments(datasource, interval_start=start, interval_end=end))
    segments = list_segments(datasource, interval_start=start, interval_end=end)
    rows = keyset_page(segments.shown_to(request.user), table.order, request.GET.get("cursor"))
    context = {
        **frame(request, datasource, "segments", **_window(start, end)),
        "page": rows,
        "start": start,
        "end": end,
        "filters": SegmentFilter(initial={"since": start, "until": end}),
        "filtered": start is not None or end is not None,
        "clear": reverse("frontend:datasource-segments", args=[name]),
        "table": table,
        "merged": merged_by_task(list(rows.rows)),
    }
    return render(request, "datasources/segments.html", context)


def _window(start: datetime | None, end: datetime | None) -> dict[str, str]:
    """The parameters of an address for a window of time."""
    return {name: time.isoformat() for name, time in (("from", start), ("to", end)) if time is not None}


def _table(request: PageRequest, segments: int) -> Table:
    """The one that the address asks for; by interval where there are too many to be sorted for a page."""
    table = LIST.table_for(request.GET)
    if table.sort.removeprefix("-") == "interval" or segments <= MAX_SORTED:
        return table
    message = f"More than {MAX_SORTED:,} segments can only be sorted by interval. Choose a shorter time first."
    messages.warning(request, message)
    return LIST.table_for({})


def _read_interval(request: PageRequest) -> Window:
    try:
        return _read_window(request)
    except InvalidInput as error:
        messages.warning(request, f"All segments are shown: {error.detail}")
        return None, None


def _read_window(request: PageRequest) -> Window:
    """``from`` and ``to`` of the address. Raises ``InvalidInput`` for one that is no time."""
    try:
        return read_time(request, "from"), read_time(request, "to")
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
