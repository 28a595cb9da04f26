"""What marking or deleting segments would do, before anybody does it. Nothing is changed here."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, QuerySet, Sum

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments import killing
from controlplane.segments.killing import amount_of
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.segments.models import Interval, Segment
from controlplane.tasks.publish_checks import is_missing
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require

INTERVALS_SHOWN = 20
MAX_SEGMENTS = 100_000  # segments of one request: half a minute on a busy machine


class Step(enum.StrEnum):
    """What may be done to segments."""

    MARK_UNUSED = "mark_unused"
    MARK_USED = "mark_used"
    KILL = "kill"


@dataclass(frozen=True)
class AffectedInterval:
    """An interval, and what of it is meant."""

    start: datetime
    end: datetime
    amount: Amount
    rule: str = ""  # that says so, in words


@dataclass(frozen=True)
class RetentionPreview:
    """What would change."""

    amount: Amount = field(default_factory=Amount)
    intervals: int = 0
    places: tuple[AffectedInterval, ...] = ()  # the earliest of them, some
    passed_over: dict[str, int] = field(default_factory=dict)  # reason → segments that would stay as they are


def preview_step(*, user: User, datasource: Datasource, chosen: SegmentSelection, step: Step) -> RetentionPreview:
    """Needs the role admin, as the step does."""
    require(user, Action.ADMINISTER, datasource.team)
    if step != Step.KILL:
        check_bound(datasource, chosen, used=step == Step.MARK_UNUSED)
    if step == Step.MARK_UNUSED:
        return _preview_of(chosen.segments(datasource).filter(used=True), {})
    if step == Step.KILL:
        return _preview_of(killing.deletable_segments(datasource, chosen), {})
    blocked = not_restorable(datasource, chosen)
    usable = chosen.segments(datasource).filter(used=False).exclude(pk__in=[s.pk for s, _ in blocked])
    return _preview_of(usable, dict(Counter(why for _, why in blocked)))


def check_bound(datasource: Datasource, chosen: SegmentSelection, *, used: bool) -> None:
    """Raise ``InvalidInput`` for more segments than one request marks."""
    if chosen.segments(datasource).filter(used=used)[: MAX_SEGMENTS + 1].count() > MAX_SEGMENTS:
        rule = ", or set a drop rule: rules have no limit" if used else ""
        raise InvalidInput(
            f"A request marks at most {MAX_SEGMENTS:,} segments, and these are more. Choose shorter intervals{rule}."
        )


def _preview_of(segments: QuerySet[Segment], passed_over: dict[str, int]) -> RetentionPreview:
    by_interval = segments.order_by().values("interval_start", "interval_end")
    sums = by_interval.annotate(n=Count("pk"), held=Sum("rows"), size=Sum("size_bytes"))
    places = tuple(
        AffectedInterval(
            row["interval_start"], row["interval_end"], Amount(row["n"], int(row["held"]), int(row["size"]))
        )
        for row in sums.order_by("interval_start", "interval_end")[:INTERVALS_SHOWN]
    )
    return RetentionPreview(amount_of(segments), by_interval.distinct().count(), places, passed_over)


def not_restorable(datasource: Datasource, chosen: SegmentSelection) -> list[tuple[Segment, str]]:
    """Those that can't be used again, with the reason."""
    unused = chosen.segments(datasource).filter(used=False).select_related("datasource")
    versions = {
        (start, end): version
        for start, end, version in Interval.objects.filter(
            datasource=datasource, start__in=unused.values("interval_start")
        ).values_list("start", "end", "version")
    }
    reasons = ((s, _why_unusable(s, versions.get((s.interval_start, s.interval_end)))) for s in unused.iterator(2000))
    return [(segment, why) for segment, why in reasons if why]


def _why_unusable(segment: Segment, version: str | None) -> str:
    if segment.replaced_by is not None:
        return "replaced by other segments"
    if segment.version != version:
        return f"the interval now has version {version}"
    if segment.kill_began_at is not None or is_missing(segment.path, segment.size_bytes):
        return "the file is deleted"
    return ""
