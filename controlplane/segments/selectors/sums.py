"""The intervals that touch a time range, as rows to be summed: day by day where they are many.

What starts on a whole day of the range touches it; what starts before and after those days is looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from controlplane.datasources.models import Datasource

DAY = timedelta(days=1)
_INTERVALS = """
    SELECT start AS interval_start, "end" AS interval_end, rows, segments, size_bytes, 1 AS intervals,
           version AS low, version AS high, min_time, max_time
    FROM segments_interval WHERE datasource_id = %(datasource)s AND segments > 0
"""
_DAYS = """
    SELECT start AS interval_start, "end" AS interval_end, rows, segments, size_bytes, intervals,
           lowest_version AS low, highest_version AS high, min_time, max_time
    FROM segments_daysum WHERE datasource_id = %(datasource)s
"""


@dataclass(frozen=True)
class Selection:
    """A SELECT of interval_start, interval_end, rows, segments, size_bytes, intervals, low, high (versions), times."""

    statement: str
    values: dict[str, Any]


def interval_rows(datasource: Datasource, start: datetime | None, end: datetime | None) -> Selection:
    """A row for each interval that touches ``[start, end)``; None: without a bound."""
    overlap = ' AND tstzrange(start, "end") && tstzrange(%(start)s, %(end)s)'
    return Selection(_INTERVALS + overlap, {"datasource": datasource.pk, "start": start, "end": end})


def day_rows(datasource: Datasource, start: datetime | None, end: datetime | None) -> Selection:
    """One row for each whole day of the window, and intervals one by one at its ends."""
    first, last = _whole_days(start, end)
    if first is not None and last is not None and first > last:
        return interval_rows(datasource, start, end)
    parts = [_DAYS + (" AND day >= %(first_day)s" if first else "") + (" AND day < %(last_day)s" if last else "")]
    if first:
        touches = (
            " AND start < %(first_day)s AND tstzrange(start, \"end\") && tstzrange(%(start)s, %(first_day)s, '[]')"
        )
        parts.append(f'{_INTERVALS}{touches} AND "end" > %(start)s')
    if last:
        parts.append(f"{_INTERVALS} AND start >= %(last_day)s AND start < %(end)s")
    values = {"datasource": datasource.pk, "start": start, "end": end, "first_day": first, "last_day": last}
    return Selection(" UNION ALL ".join(parts), values)


def _whole_days(start: datetime | None, end: datetime | None) -> tuple[datetime | None, datetime | None]:
    last = end and _midnight(end)
    if start is None or start == _midnight(start):
        return start, last
    try:
        return _midnight(start) + DAY, last
    except OverflowError:  # the last day there is: it lies in no window as a whole
        return datetime.max.replace(tzinfo=UTC), last


def _midnight(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True)
class WindowSums:
    """Of the intervals that touch a window, with segments in use."""

    intervals: int
    segments: int
    rows: int
    size_bytes: int


_SUMS = """
    SELECT coalesce(sum(intervals), 0)::int8, coalesce(sum(segments), 0)::int8, coalesce(sum(rows), 0)::int8,
           coalesce(sum(size_bytes), 0)::int8
    FROM ({}) intervals
"""


def window_sums(datasource: Datasource, start: datetime | None = None, end: datetime | None = None) -> WindowSums:
    """How much the intervals that touch ``[start, end)`` hold; None: without a bound. An empty window holds nothing."""
    if start is not None and end is not None and start >= end:
        return WindowSums(0, 0, 0, 0)
    selection = day_rows(datasource, start, end)
    with connection.cursor() as cursor:
        cursor.execute(_SUMS.format(selection.statement), selection.values)
        return WindowSums(*cursor.fetchone())
