"""A datasource's segments over time, summed in the database: as many bars as a screen can show, never more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Segment

MOST_BARS = 5000


@dataclass(frozen=True)
class Bar:
    """One interval, or where many share a pixel, a few merged. Half-open, clipped to the window.

    ``version`` is None when merged intervals differ in it.
    """

    start: datetime
    end: datetime
    rows: int
    segments: int
    size_bytes: int
    intervals: int
    version: str | None
    min_time: datetime
    max_time: datetime


@dataclass(frozen=True)
class Timeline:
    """``start`` and ``end``: of all the datasource's segments, whatever the window. ``total_rows``: of the bars."""

    bars: list[Bar]
    start: datetime | None
    end: datetime | None
    total_rows: int
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
    whole = Segment.objects.filter(datasource=datasource, used=True).aggregate(
        start=Min("interval_start"), end=Max("interval_end")
    )
    if whole["start"] is None:
        return Timeline([], None, None, 0, merged=False)
    window = (start or whole["start"], end or whole["end"])
    bars = _bars(datasource, window, MOST_BARS + 1) if window[0] < window[1] else []
    merged = len(bars) > MOST_BARS
    if merged:
        bars = _merged_bars(datasource, window, width)
    return Timeline(bars, whole["start"], whole["end"], sum(b.rows for b in bars), merged)


_INTERVALS = """
    SELECT interval_start, interval_end, sum(rows)::int8 AS rows, count(*) AS segments,
           sum(size_bytes)::int8 AS size_bytes, min(version) AS low, max(version) AS high,
           min(min_time) AS min_time, max(max_time) AS max_time
    FROM segments_segment
    WHERE datasource_id = %(datasource)s AND used AND interval_start < %(end)s AND interval_end > %(start)s
    GROUP BY interval_start, interval_end
"""
_EACH = f"""
    SELECT greatest(interval_start, %(start)s), least(interval_end, %(end)s), rows, segments, size_bytes, 1,
           low, high, min_time, max_time
    FROM ({_INTERVALS}) intervals ORDER BY interval_start, interval_end LIMIT %(limit)s
"""
_MERGED = f"""
    SELECT min(greatest(interval_start, %(start)s)), max(least(interval_end, %(end)s)), sum(rows)::int8,
           sum(segments)::int8, sum(size_bytes)::int8, count(*), min(low), max(high), min(min_time), max(max_time)
    FROM ({_INTERVALS}) intervals
    GROUP BY width_bucket(
        extract(epoch FROM greatest(interval_start, %(start)s))::float8,
        extract(epoch FROM %(start)s)::float8, extract(epoch FROM %(end)s)::float8, %(width)s)
    ORDER BY 1, 2
"""


def _bars(datasource: Datasource, window: tuple[datetime, datetime], limit: int) -> list[Bar]:
    return _read(_EACH, {"datasource": datasource.pk, "start": window[0], "end": window[1], "limit": limit})


def _merged_bars(datasource: Datasource, window: tuple[datetime, datetime], width: int) -> list[Bar]:
    return _read(_MERGED, {"datasource": datasource.pk, "start": window[0], "end": window[1], "width": width})


def _read(statement: str, values: dict[str, Any]) -> list[Bar]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [
            Bar(start, end, rows, segments, size, intervals, low if low == high else None, first, last)
            for start, end, rows, segments, size, intervals, low, high, first, last in cursor.fetchall()
        ]
