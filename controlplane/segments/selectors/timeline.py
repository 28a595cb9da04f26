"""A datasource's segments over time, from the sums that intervals keep: as many bars as a screen shows, never more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.sums import DAY, Selection, by_days, one_by_one, window_sums

MOST_BARS = 5000
MOST_LOOKED_AT = 50_000  # intervals; of more, whole days are taken together, however few those are


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

    Where a bar would be as long as half a day, or of more than 50,000 intervals, none is shorter than a day. Always
    the bars' rows sum up to the segments' rows. Raises ``InvalidInput`` for an empty window.
    """
    if start is not None and end is not None and start >= end:
        raise InvalidInput("The window is empty: 'from' must be before 'to'.")
    if not 1 <= width <= MOST_BARS:
        raise InvalidInput(f"width must be 1 to {MOST_BARS}.")
    first, last, intervals = _whole(datasource)
    if first is None or last is None:
        return Timeline([], None, None, 0, merged=False)
    low, high = start or first, end or last
    if low >= high:  # all lies on the other side of the one bound that was given
        return Timeline([], first, last, 0, merged=False)
    if start is not None or end is not None:
        intervals = window_sums(datasource, start, end).intervals
    merged = intervals > MOST_BARS
    days = merged and (intervals > MOST_LOOKED_AT or (high - low) > width / 2 * DAY)
    bars = _read(_MERGED if merged else _EACH, (by_days if days else one_by_one)(datasource, low, high), width)
    return Timeline(bars, first, last, sum(b.rows for b in bars), merged)


def _whole(datasource: Datasource) -> tuple[datetime | None, datetime | None, int]:
    with connection.cursor() as cursor:
        cursor.execute(_WHOLE, [datasource.pk])
        first, last, intervals = cursor.fetchone()
    return first, last, intervals


_WHOLE = """
    SELECT min(start), max("end"), coalesce(sum(intervals), 0)::int8 FROM segments_daysum WHERE datasource_id = %s
"""
_EACH = """
    SELECT greatest(interval_start, %(start)s), least(interval_end, %(end)s), rows, segments, size_bytes, intervals,
           low, high, min_time, max_time
    FROM ({}) intervals ORDER BY interval_start, interval_end
"""
_MERGED = """
    SELECT min(greatest(interval_start, %(start)s)), max(least(interval_end, %(end)s)), sum(rows)::int8,
           sum(segments)::int8, sum(size_bytes)::int8, sum(intervals)::int8, min(low), max(high), min(min_time),
           max(max_time)
    FROM ({}) intervals
    GROUP BY width_bucket(
        date_part('epoch', greatest(interval_start, %(start)s)),
        date_part('epoch', %(start)s), date_part('epoch', %(end)s), %(width)s)
    ORDER BY 1, 2
"""


def _read(statement: str, selection: Selection, width: int) -> list[Bar]:
    with connection.cursor() as cursor:
        cursor.execute(statement.format(selection.statement), {**selection.values, "width": width})
        return [
            Bar(start, end, rows, segments, size, intervals, low if low == high else None, first, last)
            for start, end, rows, segments, size, intervals, low, high, first, last in cursor.fetchall()
        ]
