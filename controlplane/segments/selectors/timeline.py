"""A datasource's segments over time, from the sums that intervals keep: as many bars as a screen shows, never more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.gaps import Gap
from controlplane.segments.selectors.sums import DAY, Selection, day_rows, interval_rows, window_sums

Window = tuple[datetime, datetime]  # half-open
MAX_BARS = 5000  # that may be asked for
MAX_INTERVALS = 2000  # that have a bar each: more than a screen has columns, and as many as take a tenth of a second
MAX_SCANNED = 50_000  # intervals; of more, whole days are taken together, however few those are


class BarState(StrEnum):
    """Whether records of a bar's intervals may still have to be stored."""

    COMPLETE = "complete"
    FILLING = "filling"
    BY_HAND = "by_hand"
    UNKNOWN = "unknown"


STATES = {
    BarState.COMPLETE: "All records that Kafka held when the interval ended are stored, thrown away or quarantined.",
    BarState.FILLING: "Records for this interval may still arrive: Complete until is before the interval's end.",
    BarState.BY_HAND: "No supervisor writes to this datasource. Its rows change when somebody submits a task.",
    BarState.UNKNOWN: "Headgate does not know yet until when the datasource is complete. Its completeness says why.",
}


@dataclass(frozen=True)
class Ongoing:
    """What still changes a datasource's intervals."""

    complete_until: datetime | None = None  # None: not known
    followed: bool = True  # a supervisor fills it
    compacting: Sequence[Window] = ()  # intervals whose segments are merged now
    awaiting: Sequence[Window] = ()  # those of which a merge is planned, and waits for a place

    def state_before(self, end: datetime) -> BarState:
        """That of what ends then."""
        if not self.followed:
            return BarState.BY_HAND
        if self.complete_until is None:
            return BarState.UNKNOWN
        return BarState.COMPLETE if end <= self.complete_until else BarState.FILLING


def _overlaps_any(start: datetime, end: datetime, windows: Sequence[Window]) -> bool:
    """Whether one of them shares time with ``[start, end)``."""
    return any(low < end and start < high for low, high in windows)


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
    state: BarState
    # At least one of its intervals is being compacted; or waits to be.
    compacting: bool
    awaiting: bool

    @property
    def average_bytes(self) -> int:
        """Of its segments."""
        return self.size_bytes // max(1, self.segments)


@dataclass(frozen=True)
class Timeline:
    """A datasource's segments as bars."""

    bars: list[Bar]
    # start and end: of all the datasource's segments, whatever the window.
    start: datetime | None
    end: datetime | None
    total_rows: int  # of the bars
    merged: bool
    # Where no bar lies, though the datasource has segments before and after. What is narrower than a bar is in none.
    gaps: list[Gap]


def timeline(
    datasource: Datasource,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    width: int = 1000,
    ongoing: Ongoing | None = None,
) -> Timeline:
    """Bars of the used segments that touch ``[start, end)``: one an interval, or at most ``width`` when over 2000.

    Where a bar would be as long as half a day, or of more than 50,000 intervals, none is shorter than a day. Always
    the bars' rows sum up to the segments' rows. ``ongoing``: what their states are told by. Raises ``InvalidInput``
    for an empty window.
    """
    if start is not None and end is not None and start >= end:
        raise InvalidInput("The window is empty: 'from' must be before 'to'.")
    if not 1 <= width <= MAX_BARS:
        raise InvalidInput(f"width must be 1 to {MAX_BARS}.")
    first, last, intervals = _extent(datasource)
    if first is None or last is None:
        return Timeline([], None, None, 0, merged=False, gaps=[])
    low, high = start or first, end or last
    if low >= high:  # all lies on the other side of the one bound that was given
        return Timeline([], first, last, 0, merged=False, gaps=[])
    if start is not None or end is not None:
        intervals = window_sums(datasource, start, end).intervals
    merged = intervals > MAX_INTERVALS
    days = merged and (intervals > MAX_SCANNED or (high - low) > width / 2 * DAY)
    selection = (day_rows if days else interval_rows)(datasource, low, high)
    bars = _read_bars(_MERGED if merged else _EACH, selection, -((low - high) // width), ongoing or Ongoing())
    gaps = _gaps(bars, max(low, first), min(high, last))
    return Timeline(bars, first, last, sum(b.rows for b in bars), merged, gaps)


def _gaps(bars: list[Bar], reached: datetime, end: datetime) -> list[Gap]:
    """What of the time from ``reached`` to ``end`` no bar covers. The bars are in the order of their starts."""
    gaps = []
    for bar in bars:
        if bar.start > reached:
            gaps.append(Gap(reached, bar.start))
        reached = max(reached, bar.end)
    return [*gaps, Gap(reached, end)] if reached < end else gaps


def _extent(datasource: Datasource) -> tuple[datetime | None, datetime | None, int]:
    with connection.cursor() as cursor:
        cursor.execute(_EXTENT, [datasource.pk])
        first, last, intervals = cursor.fetchone()
    return first, last, intervals


_EXTENT = """
    SELECT min(start), max("end"), coalesce(sum(intervals), 0)::int8 FROM segments_daysum WHERE datasource_id = %s
"""
_EACH = """
    SELECT greatest(interval_start, %(start)s), least(interval_end, %(end)s), rows, segments, size_bytes, intervals,
           low, high, min_time, max_time
    FROM ({}) intervals ORDER BY interval_start, interval_end
"""
# The inner SELECT stands for itself (OFFSET): else each row is sorted by its bar, which takes as long as reading it.
_MERGED = """
    SELECT min(bar_start), max(bar_end), sum(rows)::int8, sum(segments)::int8, sum(size_bytes)::int8,
           sum(intervals)::int8, min(low), max(high), min(min_time), max(max_time)
    FROM (
        SELECT greatest(interval_start, %(start)s) AS bar_start, least(interval_end, %(end)s) AS bar_end, rows,
               segments, size_bytes, intervals, low, high, min_time, max_time,
               date_bin(%(bar)s, greatest(interval_start, %(start)s), %(start)s) AS bar
        FROM ({}) intervals OFFSET 0
    ) binned
    GROUP BY bar ORDER BY 1, 2
"""


def _read_bars(statement: str, selection: Selection, bar: timedelta, ongoing: Ongoing) -> list[Bar]:
    values: dict[str, Any] = {**selection.values, "bar": bar}
    with connection.cursor() as cursor:
        cursor.execute(statement.format(selection.statement), values)
        return [
            Bar(
                start=start,
                end=end,
                rows=rows,
                segments=segments,
                size_bytes=size,
                intervals=intervals,
                version=low if low == high else None,
                min_time=first,
                max_time=last,
                state=ongoing.state_before(end),
                compacting=_overlaps_any(start, end, ongoing.compacting),
                awaiting=_overlaps_any(start, end, ongoing.awaiting),
            )
            for start, end, rows, segments, size, intervals, low, high, first, last in cursor.fetchall()
        ]
