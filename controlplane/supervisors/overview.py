"""What home and ``/api/v1/overview/`` tell: what needs a person, and how all stands, in a fixed number of reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.lag.day import DayPoint, Freshness, days_of, freshness, together
from controlplane.lag.trend import lag_trends
from controlplane.quarantine.selectors.causes import CauseFilter, list_causes
from controlplane.sources.events import new_alarms
from controlplane.sources.models import Source
from controlplane.supervisors.health import Health, Kind
from controlplane.supervisors.health_queries import health_by_supervisor
from controlplane.supervisors.health_rules import STALE
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.problems import Problem, problems_of
from controlplane.supervisors.selectors import list_supervisors
from controlplane.tasks.capacity import Pool
from controlplane.tasks.causes import described
from controlplane.tasks.models import Task
from controlplane.tasks.quota_use import shown_of
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
        return kinds_of(self.health_by_id.values())

    @property
    def behind(self) -> int:
        """Offsets of all supervisors that are not settled."""
        return behind_of(self.supervisors, self.health_by_id)


def kinds_of(health_by_id: Iterable[Health]) -> dict[Kind, int]:
    """How many stand how."""
    counted = Counter(s.kind for s in health_by_id)
    return {kind: counted.get(kind, 0) for kind in Kind}


def behind_of(supervisors: Iterable[Supervisor], health_by_id: Mapping[str, Health]) -> int:
    """Offsets that are not settled; those of a pattern are its topics'."""
    reading = [s.pk for s in supervisors if s.io_config.topicPattern is None]
    return sum(health_by_id[pk].behind or 0 for pk in reading)


def rate_of(supervisors: Iterable[Supervisor], known: Sequence[float]) -> float | None:
    """Records stored per second by those whose rate is known; None when some read, and no rate is known."""
    if known or not any(not s.suspended and s.terminated_at is None for s in supervisors):
        return sum(known)
    return None


def overview(user: User, team_name: str = "") -> Overview:
    """Raises ``NotFound`` for a team that the user does not see."""
    now, team = timezone.now(), get_team(user, team_name) if team_name else None
    datasources = Datasource.objects.visible_to(user).present()
    supervisors = list_supervisors(user)
    if team is not None:
        datasources, supervisors = datasources.filter(team=team), supervisors.filter(datasource__team=team)
    team_of, some = dict(datasources.values_list("pk", "team__name")), list(supervisors)
    ids = list(team_of)
    read = Source.objects.filter(
        Q(datasource__in=ids) | Q(datasource__in={s.datasource_id for s in some}), current=True
    )
    by_source = dict(read.values_list("pk", "datasource_id"))
    lags = lag_trends(list(by_source))
    found = health_by_supervisor(user, some, lags)
    new = CauseFilter(team=team_name, since=now - AGES_OUT_AFTER, waiting=True)
    causes = described(user, list(list_causes(user, new)[:CAUSES]), now)
    alarms = new_alarms(user, ids, now - AGES_OUT_AFTER)
    groups = {source: team_of[datasource] for source, datasource in by_source.items() if datasource in team_of}
    rates = {s: lags[s].records_per_s_now for s in groups if s in lags and now - lags[s].at <= STALE}
    known = [(groups[s], rate) for s, rate in rates.items() if rate is not None]
    days = days_of(groups, now)
    active = Task.objects.active().filter(pk__in={a.task_id for a in alarms}).values_list("pk", flat=True)
    drifts = {s.pk: s.group_drift for s in some if s.group_drift and not s.suspended and s.terminated_at is None}
    return Overview(
        at=now,
        team=team_name,
        problems=problems_of(found, causes, alarms, at_work=active if alarms else (), drifts=drifts),
        supervisors=some,
        health_by_id=found,
        pool=shown_of(team_name),
        records_per_s=rate_of(some, [rate for _, rate in known]),
        day=together(days.values()),
        teams=_teams(team_of, some, found, known, days),
        freshness=freshness(ids),
        changes=newest_entries(user, team, CHANGES),
        is_empty=not some and not ids,
    )


def _teams(
    team_of: Mapping[int, str],
    supervisors: Iterable[Supervisor],
    health_by_id: Mapping[str, Health],
    rates: Iterable[tuple[str, float]],
    days: Mapping[str, list[DayPoint]],
) -> list[TeamShare]:
    """``team_of``: by datasource; ``rates``: each source's, with its team."""
    of_team: dict[str, list[Supervisor]] = {name: [] for name in team_of.values()}
    for supervisor in supervisors:
        of_team.setdefault(supervisor.datasource.team.name, []).append(supervisor)
    known: dict[str, list[float]] = defaultdict(list)
    for name, per_s in rates:
        known[name].append(per_s)
    return [
        TeamShare(
            name,
            rate_of(some, known[name]),
            behind_of(some, health_by_id),
            kinds_of(health_by_id[s.pk] for s in some),
            days.get(name, []),
        )
        for name, some in sorted(of_team.items())
    ]
