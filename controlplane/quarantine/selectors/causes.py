"""Causes of what is in quarantine, across the datasources that a user may see, by sums: no record is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet, Sum
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import CauseSum, QuarantineCause, QuarantinedRecord
from controlplane.teams.models import User
from controlplane.teams.permissions import visible

HOURS = 24
NEW_WINDOW = timedelta(hours=24)
Key = tuple[int, str, str]  # datasource, cause, reason

_LATEST = """
    SELECT (SELECT id FROM quarantine_quarantinedrecord q WHERE q.datasource_id = w.datasource AND q.cause = w.cause
            ORDER BY q.id DESC LIMIT 1)
    FROM unnest(%s::int8[], %s::text[]) AS w(datasource, cause)
"""


@dataclass(frozen=True)
class CauseFilter:
    """Which causes; what is None or empty filters nothing."""

    team: str = ""
    datasource: str = ""
    reason: str = ""
    cause: str = ""  # a fingerprint
    since: datetime | None = None  # with records that were quarantined then or later
    waiting: bool = False  # with records that nothing has been done with

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CauseFilter:
        """From the validated values of a form or an address; others among them are left alone."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None})


def list_causes(user: User, cause_filter: CauseFilter) -> QuerySet[QuarantineCause]:
    """The causes that match, the one seen last first, with their datasources (``datasource_name``) and teams."""
    texts = {
        "datasource__team__name": cause_filter.team,
        "datasource__name": cause_filter.datasource,
        "reason": cause_filter.reason,
        "cause": cause_filter.cause,
    }
    if not all(storable(text) for text in texts.values()):
        return QuarantineCause.objects.none()
    # By datasources that are known first, so that the database adds up theirs alone.
    mine = Datasource.objects.visible_to(user).values("pk")
    causes = QuarantineCause.objects.annotate(datasource_name=F("datasource__name"))
    causes = causes.filter(datasource__in=mine, **{name: t for name, t in texts.items() if t})
    if cause_filter.since is not None:
        causes = causes.filter(last_at__gte=cause_filter.since)
    if cause_filter.waiting:
        causes = causes.filter(kept__gt=0)
    return causes.select_related("datasource__team").order_by("-last_at", "datasource_id", "cause")


def count_new_causes(user: User, now: datetime | None = None, team: str = "") -> int:
    """How many causes have put records into quarantine within the last day that still wait there; of one team alone."""
    since = (now or timezone.now()) - NEW_WINDOW
    rows = CauseSum.objects.filter(visible(user, "datasource__team"), last_at__gte=since)
    if team:
        rows = rows.filter(datasource__team__name=team)
    return rows.order_by().values("datasource", "cause").annotate(left=Sum("kept")).filter(left__gt=0).count()


def recently_quarantined(datasources: Sequence[int]) -> dict[int, int]:
    """By datasource, how many records of the last day still wait in quarantine; those without any are left out."""
    recent = CauseSum.objects.filter(datasource__in=datasources, hour__gt=timezone.now() - NEW_WINDOW).order_by()
    return {key: n for key, n in recent.values_list("datasource").annotate(Sum("kept")) if n > 0}


def trends(causes: Iterable[QuarantineCause], now: datetime | None = None) -> dict[Key, list[int]]:
    """Records by hour of quarantining, of the last 24 hours, the present one last."""
    present = (now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    hours = [present - timedelta(hours=HOURS - 1 - n) for n in range(HOURS)]
    counts = {(c.datasource_id, c.cause, c.reason): dict.fromkeys(hours, 0) for c in causes}
    sums = (
        CauseSum.objects.filter(
            datasource__in={d for d, _, _ in counts}, cause__in={c for _, c, _ in counts}, hour__gte=hours[0]
        )
        .order_by()
        .values_list("datasource_id", "cause", "reason", "hour")
        .annotate(n=Sum("records"))
    )
    for datasource, cause, reason, hour, records in sums:
        if hour in counts.get((datasource, cause, reason), {}):
            counts[(datasource, cause, reason)][hour] = max(0, records)
    return {key: list(by_hour.values()) for key, by_hour in counts.items()}


def latest_records(user: User, causes: Sequence[QuarantineCause]) -> dict[tuple[int, str], QuarantinedRecord]:
    """The last record of each, by datasource and fingerprint, without its payload."""
    if not causes:
        return {}
    with cursor() as c:
        rows = c.execute(_LATEST, ([x.datasource_id for x in causes], [x.cause for x in causes])).fetchall()
    ids = [row[0] for row in rows if row[0] is not None]
    records = QuarantinedRecord.objects.filter(pk__in=ids).shown_to(user).select_related("source")
    return {(r.datasource_id, r.cause): r for r in records.defer("payload", "headers", "key")}
