"""What datasources hold, and their segments in lists that are not too long.

What takes a datasource trusts the caller to have got it from a selector that filters by user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Max, Min, OuterRef, QuerySet, Sum

from controlplane.common.errors import InvalidInput, NotFound
from controlplane.datasources.models import Datasource
from controlplane.retention.segment_selection import existing_ids
from controlplane.segments.models import DaySum, Interval, KilledSegment, Removal, Segment
from controlplane.segments.selectors.lists import killed_segment
from controlplane.segments.snapshot_leases import with_leases
from controlplane.teams.models import User

MAX_NAMED, MAX_LISTED_SEGMENTS = 100_000, 10_000


@dataclass(frozen=True)
class StorageSummary:
    """Of a datasource's segments in use: how many, how large, and from when to when their intervals reach."""

    segments: int = 0
    size_bytes: int = 0
    start: datetime | None = None
    end: datetime | None = None


def storage_summary(datasources: Iterable[Datasource]) -> dict[int, StorageSummary]:
    """By datasource, of those that hold something."""
    sums = DaySum.objects.filter(datasource__in=[d.pk for d in datasources]).values("datasource_id")
    rows = sums.annotate(n=Sum("segments"), size=Sum("size_bytes"), low=Min("start"), high=Max("end")).order_by()
    return {
        row["datasource_id"]: StorageSummary(int(row["n"]), int(row["size"]), row["low"], row["high"]) for row in rows
    }


def intervals_in_use(datasource: Datasource, start: datetime | None, end: datetime | None) -> QuerySet[Interval]:
    """Its intervals with segments in use that lie within ``[start, end)``, the latest first. None: without a bound."""
    intervals = Interval.objects.filter(datasource=datasource, segments__gt=0)
    if start is not None:
        intervals = intervals.filter(start__gte=start)
    if end is not None:
        intervals = intervals.filter(end__lte=end)
    return intervals.order_by("-start", "-end")


def has_segments() -> Exists:
    """Of datasources: they have segments, in use or not."""
    return Exists(Segment.objects.filter(datasource=OuterRef("pk")))


def segments_in_use(user: User, *datasources: Datasource) -> QuerySet[Segment]:
    """Their segments in use, by interval and number, as they are shown to the user."""
    segments = Segment.objects.filter(datasource__in=datasources, used=True).select_related("datasource")
    return segments.shown_to(user).order_by("interval_start", "interval_end", "partition_num")


def unused_segments(user: User, datasource: Datasource) -> QuerySet[Segment]:
    """Its segments that are not in use and whose files are there still, those that have been so for longest first.

    As they are shown to the user.
    """
    segments = Segment.objects.filter(datasource=datasource, used=False).select_related("datasource", "removal")
    return with_leases(segments.shown_to(user)).order_by("unused_at", "pk")


def list_removals(datasource: Datasource) -> QuerySet[Removal]:
    """What took segments of it out of use, the newest first."""
    return Removal.objects.filter(datasource=datasource).order_by("-id")


def list_at_most(segments: QuerySet[Segment], most: int) -> list[Segment]:
    """All of them. Raises ``InvalidInput`` for more."""
    rows = list(segments[: most + 1])
    if len(rows) > most:
        raise InvalidInput(f"There are more than {most:,} segments; ask for those of an interval.")
    return rows


def find_segment(datasource: Datasource, identifier: str, *, used: bool | None = None) -> Segment:
    """By Druid's identifier or Headgate's id. Raises ``NotFound``, and ``InvalidInput`` for what is no id."""
    matches = Segment.objects.filter(pk__in=existing_ids(datasource, [identifier]))
    segments = with_leases(matches.select_related("datasource__team", "removal"))
    segment = (segments if used is None else segments.filter(used=used)).first()
    if segment is None:
        raise NotFound(f"There is no segment {identifier!r} of {datasource.name}.")
    return segment


def segment_or_killed(datasource: Datasource, identifier: str) -> Segment | KilledSegment:
    """It, or what is left of it once its file is deleted, which is found by Headgate's id alone.

    Raises ``NotFound`` for what there is not, and for what is no id.
    """
    try:
        return find_segment(datasource, identifier)
    except (NotFound, InvalidInput):
        return killed_segment(datasource, identifier)
