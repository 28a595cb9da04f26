"""A datasource's segments over time, from the sums that intervals keep: as many bars as a screen shows, never more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Interval

MOST_BARS = 5000


@dataclass(frozen=True)
class Bar:
    """One interval, or where many share a pixel, a few merged. Half-open, clipped to the window."""

    start: datetime
    end: datetime
    rows: int
    segments: int
    size_bytes: int
    intervals: int
    version: str | None  # None when merged intervals differ in it
    min_time: datetime
    max_time: datetime


@dataclass(frozen=True)
class Timeline:
    """A datasource's segments as bars."""

    bars: list[Bar]
    # start and end: of all the datasource's segments, whatever the window.
    start: datetime | None
    end: datetime | None
    total_rows: int  # of the bars
    merged: bool


def timeline(
    datasource: Datasource, *, start: datetime | None = None, end: datetime | None = None, width: int = 1000
) -> Timeline:
    """Bars of the used segments that touch ``[start, end)``: one an interval, or at most ``width`` when over 5000.

    Either way the bars' rows sum up to the segments' rows. Raises ``InvalidInput`` for an empty window.
    """
    if start is not None and end is not None and start >= end:
        raise InvalidInput("The window is empty: 'from' must be before 'to'.")
    if not 1 <= width <= MOST_BARS:
        raise InvalidInput(f"width must be 1 to {MOST_BARS}.")
    intervals = Interval.objects.filter(datasource=datasource, segments__gt=0)
    whole = intervals.aggregate(start=Min("start"), end=Max("end"))
    if whole["start"] is None:
        return Timeline([], None, None, 0, merged=False)
    window = {"start": start or whole["start"], "end": end or whole["end"]}
    merged = intervals.filter(start__lt=window["end"], end__gt=window["start"]).count() > MOST_BARS
    bars = _read(_MERGED if merged else _EACH, {"datasource": datasource.pk, "width": width, **window})
    return Timeline(bars, whole["start"], whole["end"], sum(b.rows for b in bars), merged)


_INTERVALS = """
    SELECT start AS interval_start, "end" AS interval_end, rows, segments, size_bytes, version, min_time, max_time
    FROM segments_interval
    WHERE datasource_id = %(datasource)s AND segments > 0 AND start < %(end)s AND "end" > %(start)s
"""
_EACH = f"""
    SELECT greatest(interval_start, %(start)s), least(interval_end, %(end)s), rows, segments, size_bytes, 1,
           version, version, min_time, max_time
    FROM ({_INTERVALS}) intervals ORDER BY interval_start, interval_end
"""
_MERGED = f"""
    SELECT min(greatest(interval_start, %(start)s)), max(least(interval_end, %(end)s)), sum(rows)::int8,
           sum(segments)::int8, sum(size_bytes)::int8, count(*), min(version), max(version), min(min_time),
           max(max_time)
    FROM ({_INTERVALS}) intervals
    GROUP BY width_bucket(
        extract(epoch FROM greatest(interval_start, %(start)s))::float8,
        extract(epoch FROM %(start)s)::float8, extract(epoch FROM %(end)s)::float8, %(width)s)
    ORDER BY 1, 2
"""


def _read(statement: str, values: dict[str, Any]) -> list[Bar]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [
            Bar(start, end, rows, segments, size, intervals, low if low == high else None, first, last)
            for start, end, rows, segments, size, intervals, low, high, first, last in cursor.fetchall()
        ]
