"""Quotas of teams: set, and looked at for whether one is used up.

Rows a day and stored bytes are used up by what is published, which is never refused: tasks that read publish what they
hold and end, none starts, and what is in Kafka waits there. ``update_used_up`` alone decides that, and keeps it.
Indexers at once are a place in a queue: who finds none waits (``tasks.capacity``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.common.health import one_text
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence
from controlplane.quotas.models import Quota
from controlplane.segments.models import DaySum
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import require_site_admin
from controlplane.teams.services import lock_team

USED_UP_BY_TASKS = ("indexers", "rows_a_day", "stored_bytes")
OF_QUERIES = ("sql_seconds", "sql_mebibytes", "sql_rows", "sql_queries")  # each query's own: nothing is used up
LIMITS = (*USED_UP_BY_TASKS, *OF_QUERIES)
MAX_VALUES = {"indexers": 1_000_000, "rows_a_day": 10**15, "stored_bytes": 10**18}
MAX_VALUES |= {"sql_seconds": 86_400, "sql_mebibytes": 1_000_000, "sql_rows": 1_000_000, "sql_queries": 1_000}
UsedUp = Quota.UsedUp


@dataclass(frozen=True)
class Usage:
    """What a team has published, as far as quotas count it."""

    rows_a_day: int
    stored_bytes: int


@dataclass(frozen=True)
class OverQuota:
    """A quota that is used up."""

    team: str
    limit: str  # of ``LIMITS``
    max_amount: int
    since: datetime | None
    until: datetime | None  # when it begins anew by itself; None: it does not

    @property
    def cause(self) -> str:
        """Why nothing of the team may read."""
        what = f"{self.max_amount:,} rows a day" if self.limit == UsedUp.ROWS else f"{self.max_amount:,} stored bytes"
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        then = f" It continues at {self.until:%Y-%m-%d %H:%M} UTC." if self.until else ""
        return f"Team {self.team} has used up its quota of {what}{since}. Nothing is lost: records wait in Kafka.{then}"

    @property
    def action(self) -> str:
        """What a person should do."""
        return f"Ask a site administrator to raise the quota{', to continue earlier' if self.until else ''}."

    @property
    def text(self) -> str:
        """Both."""
        return one_text(self.cause, self.action)


def usage_of_teams(teams: Collection[int]) -> dict[int, Usage]:
    """Of each of these teams; two statements for any number of them."""
    today = timezone.now().astimezone(UTC).date()
    in_teams = {"datasource__team__in": teams}
    rows = IndexerFence.objects.filter(published_on=today, **in_teams).values_list("datasource__team")
    size = DaySum.objects.filter(**in_teams).values_list("datasource__team")
    rows_of = dict(rows.annotate(n=Sum("published_today")).order_by())
    size_of = dict(size.annotate(n=Sum("size_bytes")).order_by())
    return {team: Usage(rows_of.get(team) or 0, size_of.get(team) or 0) for team in teams}


def limits_of_teams() -> dict[str, tuple[int | None, bool]]:
    """By team: how many indexers it may run at once, and whether none of its tasks may start; those without are left
    out.
    """
    limited = Quota.objects.filter(Q(indexers__isnull=False) | ~Q(used_up=UsedUp.NO))
    rows = limited.values_list(F("team__name"), "indexers", "used_up")
    return {team: (indexers, bool(used_up)) for team, indexers, used_up in rows}


def quota_of(team: Team) -> Quota:
    """The team's, or one without limits that is not stored."""
    return Quota.objects.filter(team=team).first() or Quota(team=team)


def datasources_over_quota(datasources: Collection[int]) -> dict[int, OverQuota]:
    """Those of these whose team has used up a quota."""
    by_team = {quota.team_id: to_over_quota(quota) for quota in _quotas_used_up()}
    if not by_team:
        return {}
    mine = Datasource.objects.filter(pk__in=datasources, team__in=by_team)
    return {pk: by_team[team] for pk, team in mine.values_list("pk", "team_id")}


def team_over_quota(team_id: int) -> OverQuota | None:
    """The quota that a team has used up."""
    quota = _quotas_used_up().filter(team=team_id).first()
    return None if quota is None else to_over_quota(quota)


def _quotas_used_up() -> QuerySet[Quota]:
    return Quota.objects.exclude(used_up=UsedUp.NO).select_related("team")


def to_over_quota(quota: Quota) -> OverQuota:
    tomorrow = (timezone.now().astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    of_day = quota.used_up == UsedUp.ROWS
    most = getattr(quota, quota.used_up) or 0
    return OverQuota(quota.team.name, quota.used_up, most, quota.used_up_since, tomorrow if of_day else None)


def set_quota(*, user: User, team: Team, limits: Mapping[str, int | None]) -> Quota:
    """Set all limits, those that are not named to none. Raises ``NotAllowed``, ``InvalidInput`` with every fault."""
    require_site_admin(user)
    _check(limits)
    after = {name: limits.get(name) for name in LIMITS}
    with transaction.atomic():
        # Locked: of two who write at once the trail tells what each changed.
        lock_team(team)
        quota = quota_of(team)
        before = {name: getattr(quota, name) for name in LIMITS}
        if before != after:
            for name, value in after.items():
                setattr(quota, name, value)
            quota.save()
            audit.record(
                user=user, team=team, target="team", target_id=team.name, action="quota", before=before, after=after
            )
        _update_quota(quota, usage_of_teams({team.pk})[team.pk])
    return quota


def _check(limits: Mapping[str, int | None]) -> None:
    faults = [FieldError(f"/{name}", "is no quota", name) for name in limits if name not in LIMITS]
    for name, value in limits.items():
        if name in LIMITS and value is not None and not _is_number(value, MAX_VALUES[name]):
            faults.append(
                FieldError(f"/{name}", f"must be a whole number from 0 to {MAX_VALUES[name]:,}, or null", name)
            )
    if faults:
        raise InvalidInput("The quota has errors.", faults)


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def check_indexers(team: Team | None, field: str, indexers: int) -> None:
    """Raise ``InvalidInput`` when a spec alone asks for more than its team may ever run: it would wait for ever."""
    limit = quota_of(team).indexers if team is not None else None
    if team is not None and limit is not None and indexers > limit:
        raise InvalidInput(
            f"ioConfig.{field} makes {indexers} indexers, but team {team.name} may run at most {limit}. Reduce it, or "
            "ask a site administrator to raise the team's quota."
        )


def update_used_up() -> list[Quota]:
    """Whose quota is used up, or no longer; returns those that are used up."""
    limited = Quota.objects.filter(Q(rows_a_day__isnull=False) | Q(stored_bytes__isnull=False) | ~Q(used_up=UsedUp.NO))
    quotas = list(limited.select_related("team"))
    usages = usage_of_teams({quota.team_id for quota in quotas})
    for quota in quotas:
        _update_quota(quota, usages[quota.team_id])
    return [quota for quota in quotas if quota.used_up]


def _update_quota(quota: Quota, usage: Usage) -> None:
    used_up = _limit_used_up(quota, usage)
    if used_up == quota.used_up:
        return
    since = timezone.now() if used_up else None
    # The row count decides who has noticed it; limits that were changed meanwhile are looked at anew.
    same = {name: getattr(quota, name) for name in LIMITS}
    won = Quota.objects.filter(pk=quota.pk, used_up=quota.used_up, **same).update(used_up=used_up, used_up_since=since)
    if won:
        quota.used_up, quota.used_up_since = used_up, since
        notify_pages(Change(team=quota.team_id, urgent=True))


def _limit_used_up(quota: Quota, usage: Usage) -> UsedUp:
    if quota.stored_bytes is not None and usage.stored_bytes >= quota.stored_bytes:
        return UsedUp.BYTES
    if quota.rows_a_day is not None and usage.rows_a_day >= quota.rows_a_day:
        return UsedUp.ROWS
    return UsedUp.NO
