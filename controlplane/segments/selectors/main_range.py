"""Where in time nearly all rows of a datasource lie, and which of its days lie far from there.

One record with a wrong time makes a datasource of many years: nobody sees the rows then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.datasources.models import Datasource
from controlplane.segments.models import DaySum

SHARE = 0.99  # of the rows
FAR_FACTOR = 10  # times as long as where they lie: then the rest is far away
OUTLIERS_SHOWN = 3


@dataclass(frozen=True)
class Span:
    """The intervals of one day, or of several."""

    start: datetime
    end: datetime
    rows: int


@dataclass(frozen=True)
class Bulk:
    """The time in which ``SHARE`` of the rows or more lie together, and the days far from it, the farthest first."""

    start: datetime
    end: datetime
    outliers: Sequence[Span]

    @property
    def rows_outside(self) -> int:
        return sum(span.rows for span in self.outliers)

    @property
    def farthest(self) -> Sequence[Span]:
        """Those that are named."""
        return self.outliers[:OUTLIERS_SHOWN]

    @property
    def more(self) -> int:
        """Days that are not named."""
        return len(self.outliers) - len(self.farthest)


def bulk_of(datasource: Datasource) -> Bulk | None:
    """None where nearly all rows lie as far apart as all of them do."""
    days = DaySum.objects.filter(datasource=datasource).order_by("day").values_list("start", "end", "rows")
    return bulk([Span(*day) for day in days])


def bulk(days: Sequence[Span]) -> Bulk | None:
    """``days``: in the order of their starts."""
    if len(days) < 2:
        return None
    first, last = _shortest_range(days)
    start, end = _widen(days, days[first].start, max(day.end for day in days[first : last + 1]))
    total = max(day.end for day in days) - days[0].start
    if total < FAR_FACTOR * (end - start):
        return None
    outside = [day for day in days if _distance(day, start, end) > end - start]
    return Bulk(start, end, sorted(outside, key=lambda day: _distance(day, start, end), reverse=True))


def _distance(day: Span, start: datetime, end: datetime) -> timedelta:
    """From that time; negative inside it."""
    return max(start - day.end, day.start - end)


def _widen(days: Sequence[Span], start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The time with each day that is no farther from it than it is long, and so on: a quiet day is no outlier."""
    while True:
        near = [day for day in days if _distance(day, start, end) <= end - start]
        wide = min(day.start for day in near), max(day.end for day in near)
        if wide == (start, end):
            return wide
        start, end = wide


def _shortest_range(days: Sequence[Span]) -> tuple[int, int]:
    """The first and the last of the days that have enough rows, and lie closest together."""
    threshold = SHARE * sum(day.rows for day in days)
    best, rows, first = (0, len(days) - 1), 0, 0
    for last, day in enumerate(days):
        rows += day.rows
        while first < last and rows - days[first].rows >= threshold:
            rows -= days[first].rows
            first += 1
        if rows >= threshold and day.end - days[first].start < days[best[1]].end - days[best[0]].start:
            best = (first, last)
    return best
