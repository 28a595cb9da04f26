"""Which segments a time range needs: through the intervals, so that a day of a million segments takes milliseconds.

All that overlaps by time goes this way. Segments have no index by which an overlap could be found; intervals have
(``interval_by_span``), and a segment lies in an interval that has its very start and end.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import DateTimeRangeField
from django.db.models import F, Func, Q, QuerySet
from django.db.models.expressions import Combinable
from psycopg.types.range import TimestamptzRange

from controlplane.datasources.masked_querysets import ConcealingQuerySet
from controlplane.datasources.models import Datasource
from controlplane.segments.models import DaySum, Interval, Segment


def intervals_within(
    datasource: Datasource, start: datetime | None = None, end: datetime | None = None
) -> QuerySet[Interval]:
    """Its intervals with segments in use that touch ``[start, end)``, in no order. None: without a bound.

    An empty window, and one that ends before it starts, touches nothing.
    """
    intervals = Interval.objects.filter(datasource=datasource, segments__gt=0)
    if start is None and end is None:
        return intervals
    if start is not None and end is not None and start >= end:
        return intervals.none()
    if end is not None:  # follows from the overlap; lists that go back from there by another index begin there
        intervals = intervals.filter(start__lt=end)
    return intervals.alias(span=_span()).filter(span__overlap=TimestamptzRange(start, end))


def latest_intervals(datasource: Datasource, start: datetime | None, end: datetime | None, most: int) -> list[Interval]:
    """Of ``intervals_within`` those with the latest rows, the latest first.

    Each of the days with the latest rows has such an interval, but for the two at the window's ends: ``most`` and two
    of them have as many as are wanted, and none of another day is later.
    """
    days = DaySum.objects.filter(datasource=datasource)
    if start is not None:
        days = days.filter(end__gt=start)
    if end is not None:
        days = days.filter(start__lt=end)
    latest = list(days.order_by("-max_time").values_list("day", flat=True)[: most + 2])
    intervals = intervals_within(datasource, start, end)
    if len(latest) > most:
        intervals = intervals.filter(start__gte=min(latest))
    return list(intervals.order_by("-max_time")[:most])


def live_segments(
    datasource: Datasource, start: datetime | None = None, end: datetime | None = None, as_of: datetime | None = None
) -> ConcealingQuerySet[Segment]:
    """Its segments in use whose interval touches ``[start, end)``, in no order. None: without a bound.

    ``as_of``: those that were in use at that time, though others may have taken their place since, or nobody.

    One statement, and so of one moment: what a publish or a replace changes meanwhile is there whole or not at all. Who
    must know later whether it still holds reads the revisions of ``intervals_within`` in the same transaction
    (REPEATABLE READ), and compares them under the intervals' locks.
    """
    segments = Segment.objects.filter(datasource=datasource)
    if as_of is None:
        segments = segments.filter(used=True)
    else:
        again = Q(used_again_at=None) | Q(used_again_at__lte=as_of)
        segments = segments.filter(Q(used=True) & again | Q(unused_at__gt=as_of), created_at__lte=as_of)
    if start is None and end is None:
        return segments
    if start is not None:
        segments = segments.filter(interval_end__gt=start)
    if end is not None:
        segments = segments.filter(interval_start__lt=end)
    return segments.filter(interval_start__in=intervals_within(datasource, start, end).values("start"))


def _span() -> Combinable:
    return Func(F("start"), F("end"), function="tstzrange", output_field=DateTimeRangeField())
