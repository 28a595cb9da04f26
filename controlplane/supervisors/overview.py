"""What home and ``/api/v1/overview/`` tell: what needs a person, and how all stands, in a fixed number of reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from controlplane.common.health import Health, Kind
from controlplane.datasources.models import Datasource
from controlplane.lag.last_day import DayPoint, Freshness, day_by_group, freshness, sum_groups
from controlplane.lag.trend import lag_trends
from controlplane.quarantine.selectors.causes import CauseFilter, list_causes
from controlplane.sources.events import new_alarms
from controlplane.sources.models import Source
from controlplane.supervisors.health_queries import health_by_supervisor
from controlplane.supervisors.health_rules import STALE
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.problems import Problem, problems_of
from controlplane.supervisors.selectors import list_supervisors
from controlplane.tasks.capacity import Pool
from controlplane.tasks.causes import describe_causes
from controlplane.tasks.models import Task
from controlplane.tasks.quota_use import pool_of_team
from controlplane.teams.audit import newest_entries
from controlplane.teams.models import AuditEntry, User
from controlplane.teams.selectors import get_team

AGES_OUT_AFTER = timedelta(hours=24)  # alarms, and what was quarantined
CHANGES = 10
CAUSES = 50


@dataclass(frozen=True)
class TeamShare:
    """What a team has in it."""

    name: str
    records_per_s: float | None
    behind: int
    kinds: dict[Kind, int]
    day: list[DayPoint]


@dataclass(frozen=True)
class Overview:
    """How a team's, or all of a user's teams', things stand."""

    at: datetime
    team: str  # empty for all
    problems: list[Problem]
    supervisors: list[Supervisor]
    health_by_id: Mapping[str, Health]  # by supervisor
    pool: Pool
    records_per_s: float | None  # stored in the last minute; None: no reader was looked at
    day: list[DayPoint]
    teams: list[TeamShare]  # by name
    freshness: list[Freshness]
    changes: list[AuditEntry]  # what the user may read of the audit trail
    is_empty: bool  # nothing was ever submitted

    @property
    def kinds(self) -> dict[Kind, int]:
        """How many supervisors stand how."""
        return count_by_kind(self.health_by_id.values())

    @property
    def behind(self) -> int:
        """Offsets of all supervisors that are not settled."""
        return total_behind(self.supervisors, self.health_by_id)


def count_by_kind(healths: Iterable[Health]) -> dict[Kind, int]:
    """How many stand how."""
    counts = Counter(s.kind for s in healths)
    return {kind: counts.get(kind, 0) for kind in Kind}


def total_behind(supervisors: Iterable[Supervisor], health_by_id: Mapping[str, Health]) -> int:
    """Offsets that are not settled; those of a pattern are its topics', those of a backfill its supervisor's."""
    reading = [s.pk for s in supervisors if s.io_config.topicPattern is None and s.fills_id is None]
    return sum(health_by_id[pk].behind or 0 for pk in reading)


def total_rate(supervisors: Iterable[Supervisor], rates: Sequence[float]) -> float | None:
    """Records stored per second by those whose rate is known; None when some read, and no rate is known."""
    if rates or not any(not s.suspended and s.terminated_at is None for s in supervisors):
        return sum(rates)
    return None


def overview(user: User, team_name: str = "") -> Overview:
    """Raises ``NotFound`` for a team that the user does not see."""
    now, team = timezone.now(), get_team(user, team_name) if team_name else None
    datasources = Datasource.objects.visible_to(user).present()
    supervisors = list_supervisors(user)
    if team is not None:
        datasources, supervisors = datasources.filter(team=team), supervisors.filter(datasource__team=team)
    team_of, listed = dict(datasources.values_list("pk", "team__name")), list(supervisors)
    ids = list(team_of)
    sources_read = Source.objects.filter(
        Q(datasource__in=ids) | Q(datasource__in={s.datasource_id for s in listed}), current=True
    )
    by_source = dict(sources_read.values_list("pk", "datasource_id"))
    lags = lag_trends(list(by_source))
    health_by_id = health_by_supervisor(user, listed, lags)
    recent = CauseFilter(team=team_name, since=now - AGES_OUT_AFTER, waiting=True)
    causes = describe_causes(user, list(list_causes(user, recent)[:CAUSES]), now)
    alarms = new_alarms(user, ids, now - AGES_OUT_AFTER)
    team_by_source = {source: team_of[datasource] for source, datasource in by_source.items() if datasource in team_of}
    rates = {s: lags[s].records_per_s_now for s in team_by_source if s in lags and now - lags[s].at <= STALE}
    known_rates = [(team_by_source[s], rate) for s, rate in rates.items() if rate is not None]
    days = day_by_group(team_by_source, now)
    active = Task.objects.active().filter(pk__in={a.task_id for a in alarms}).values_list("pk", flat=True)
    drifts = {s.pk: s.group_drift for s in listed if s.group_drift and not s.suspended and s.terminated_at is None}
    return Overview(
        at=now,
        team=team_name,
        problems=problems_of(health_by_id, causes, alarms, active_tasks=active if alarms else (), drifts=drifts),
        supervisors=listed,
        health_by_id=health_by_id,
        pool=pool_of_team(team_name),
        records_per_s=total_rate(listed, [rate for _, rate in known_rates]),
        day=sum_groups(days.values()),
        teams=_team_shares(team_of, listed, health_by_id, known_rates, days),
        freshness=freshness(ids),
        changes=newest_entries(user, team, CHANGES),
        is_empty=not listed and not ids,
    )


def _team_shares(
    team_of: Mapping[int, str],
    supervisors: Iterable[Supervisor],
    health_by_id: Mapping[str, Health],
    rates: Iterable[tuple[str, float]],
    days: Mapping[str, list[DayPoint]],
) -> list[TeamShare]:
    """``team_of``: by datasource; ``rates``: each source's, with its team."""
    by_team: dict[str, list[Supervisor]] = {name: [] for name in team_of.values()}
    for supervisor in supervisors:
        by_team.setdefault(supervisor.datasource.team.name, []).append(supervisor)
    rates_by_team: dict[str, list[float]] = defaultdict(list)
    for name, per_s in rates:
        rates_by_team[name].append(per_s)
    return [
        TeamShare(
            name,
            total_rate(some, rates_by_team[name]),
            total_behind(some, health_by_id),
            count_by_kind(health_by_id[s.pk] for s in some),
            days.get(name, []),
        )
        for name, some in sorted(by_team.items())
    ]
