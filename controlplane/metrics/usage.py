"""What teams use, by month of UTC: core-seconds, and bytes that were read and stored. A basis for charging.

A task holds one core for each of its slots. Every minute the time since the last fold is added for the slots that it
has now, and what its datasource has read and stored since. So nothing is lost when tasks end or are deleted.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.metrics.models import TeamUsage, UsageFold
from controlplane.metrics.record_sums import record_totals
from controlplane.tasks.capacity import running, slots_of
from controlplane.tasks.models import Task
from controlplane.teams.audit_export import escape_formula
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from controlplane.teams.selectors import get_team, teams_administered

COLUMNS = ("team", "month", "core_seconds", "read_bytes", "stored_bytes")
_MS = timedelta(milliseconds=1)
Month = str


@dataclass(frozen=True)
class Span:
    """For how long a team's task held slots."""

    team: int
    slots: int
    start: datetime
    end: datetime | None = None  # None: it holds them still


def months(since: datetime, until: datetime) -> list[tuple[Month, datetime, datetime]]:
    """The time between two, cut where a month of UTC begins."""
    parts, start = [], since.astimezone(UTC)
    while start < until:
        first = start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        following = (first + timedelta(days=32)).replace(day=1)
        parts.append((f"{start:%Y-%m}", start, min(following, until)))
        start = following
    return parts


def core_ms(spans: list[Span], since: datetime, until: datetime) -> dict[tuple[int, Month], int]:
    """By team and month, of the time between two."""
    sums: dict[tuple[int, Month], int] = defaultdict(int)
    for month, start, end in months(since, until):
        for span in spans:
            held = min(span.end or end, end) - max(span.start, start)
            if held > timedelta():
                sums[span.team, month] += span.slots * (held // _MS)
    return dict(sums)


@transaction.atomic
def fold(now: datetime | None = None) -> None:
    """Add what was used since the last time; the first time, since the first task."""
    until = now or timezone.now()
    if not UsageFold.objects.exists():
        first = Task.objects.order_by("created_at").values_list("created_at", flat=True).first()
        UsageFold.objects.get_or_create(defaults={"until": first or until, "open_tasks": [], "totals": {}})
    last = UsageFold.objects.select_for_update().get()  # another worker may be at it
    if until <= last.until:
        return
    totals, teams = _bytes_by_datasource(), dict(Datasource.objects.values_list("pk", "team_id"))
    for (team, month), used in core_ms(_spans(last), last.until, until).items():
        _add(team, month, core_ms=used)
    month = f"{until.astimezone(UTC):%Y-%m}"
    for datasource, (read, stored) in totals.items():
        before = last.totals.get(datasource, (0, 0))
        if int(datasource) in teams and (read > before[0] or stored > before[1]):
            grown = {"read_bytes": max(0, read - before[0]), "stored_bytes": max(0, stored - before[1])}
            _add(teams[int(datasource)], month, **grown)
    last.until, last.totals = until, totals
    last.open_tasks = _open_tasks()
    last.save()


def usage(user: User, team: str = "") -> QuerySet[TeamUsage]:
    """Of the teams that the user administers, or of one. Raises ``NotFound``, ``NotAllowed``."""
    rows = TeamUsage.objects.select_related("team")
    if not team:
        return rows.filter(team__in=teams_administered(user).values("pk"))
    found = get_team(user, team)
    require(user, Action.ADMINISTER, found)
    return rows.filter(team=found)


def totals_by_team() -> list[tuple[str, float, int, int]]:
    """Of each team that has used something, since it exists: core-seconds, bytes read and stored."""
    rows = TeamUsage.objects.order_by().values_list("team__name")
    sums = rows.annotate(Sum("core_ms"), Sum("read_bytes"), Sum("stored_bytes"))
    return [(team, ms / 1000, read, stored) for team, ms, read, stored in sums]


def csv_lines(rows: QuerySet[TeamUsage]) -> Iterator[bytes]:
    """With a head, newest month first."""
    yield _line(COLUMNS)
    for row in rows.order_by("-month", "team__name"):
        yield _line((escape_formula(row.team.name), row.month, row.core_seconds, row.read_bytes, row.stored_bytes))


def _line(cells: tuple[object, ...]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def _spans(last: UsageFold) -> list[Span]:
    """Of tasks that hold slots, or have ended since the last fold: of these it is known how many they were to have."""
    tasks = running().filter(without_slot_since=None).only("id", "indexers_wanted", "launched_at", "datasource_id")
    holding = list(tasks)
    teams = dict(Datasource.objects.filter(pk__in={t.datasource_id for t in holding}).values_list("pk", "team_id"))
    spans = [Span(teams[t.datasource_id], slots_of(t), t.launched_at or last.until) for t in holding]
    ended = Task.objects.in_pool().filter(launched_at__isnull=False, ended_at__gt=last.until)
    ended = ended.filter(Q(pk__in=last.open_tasks) | Q(created_at__gte=last.until))
    ended = ended.exclude(pk__in=[t.pk for t in holding])  # one that has ended meanwhile
    values = ended.values_list("datasource__team_id", "indexers_wanted", "launched_at", "ended_at")
    return spans + [Span(team, slots, launched or last.until, end) for team, slots, launched, end in values]


def _open_tasks() -> list[str]:
    return list(Task.objects.active().in_pool().values_list("pk", flat=True))


def _bytes_by_datasource() -> Mapping[str, tuple[int, int]]:
    return {
        str(pk): (totals.counters.get("input_bytes") or 0, totals.counters.get("size_bytes") or 0)
        for pk, totals in record_totals().items()
    }


def _add(team: int, month: Month, **used: int) -> None:
    TeamUsage.objects.get_or_create(team_id=team, month=month)
    changes = {name: F(name) + amount for name, amount in used.items()}
    TeamUsage.objects.filter(team_id=team, month=month).update(**changes)
