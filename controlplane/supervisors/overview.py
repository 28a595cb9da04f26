"""What home and ``/api/v1/overview/`` tell: what needs a person, and how all stands, in a fixed number of reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.segments.models import Source
from controlplane.segments.selectors import (
    DayPoint,
    Freshness,
    day_of,
    freshness,
    lag_trends,
    new_alarms,
)
from controlplane.segments.selectors.causes import CauseFilter, list_causes
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.problems import Problem, problems_of
from controlplane.supervisors.selectors import list_supervisors
from controlplane.supervisors.standing import STALE, Kind, Standing
from controlplane.supervisors.standings import standings
from controlplane.tasks.capacity import Pool, shown
from controlplane.tasks.causes import described
from controlplane.tasks.models import Task
from controlplane.teams.audit import newest_entries
from controlplane.teams.models import AuditEntry, User
from controlplane.teams.selectors import get_team

AGES_OUT_AFTER = timedelta(hours=24)  # alarms, and what was quarantined
CHANGES = 10
CAUSES = 50


@dataclass(frozen=True)
class Overview:
    """How a team's, or all of a user's teams', things stand."""

    at: datetime
    team: str  # empty for all
    problems: list[Problem]
    supervisors: list[Supervisor]
    standings: Mapping[str, Standing]  # by supervisor
    pool: Pool
    records_per_s: float  # stored in the last minute
    day: list[DayPoint]
    freshness: list[Freshness]
    changes: list[AuditEntry]  # what the user may read of the audit trail
    is_empty: bool  # nothing was ever submitted

    @property
    def kinds(self) -> dict[Kind, int]:
        """How many supervisors stand how."""
        counted = Counter(s.kind for s in self.standings.values())
        return {kind: counted.get(kind, 0) for kind in Kind}

    @property
    def behind(self) -> int:
        """Offsets of all supervisors that are not settled; those of a pattern are its topics'."""
        reading = [s.pk for s in self.supervisors if s.io_config.topicPattern is None]
        return sum(self.standings[pk].behind or 0 for pk in reading)


def overview(user: User, team_name: str = "") -> Overview:
    """Raises ``NotFound`` for a team that the user does not see."""
    now, team = timezone.now(), get_team(user, team_name) if team_name else None
    datasources = Datasource.objects.visible_to(user).present()
    supervisors = list_supervisors(user)
    if team is not None:
        datasources, supervisors = datasources.filter(team=team), supervisors.filter(datasource__team=team)
    ids, some = list(datasources.values_list("pk", flat=True)), list(supervisors)
    read = Source.objects.filter(
        Q(datasource__in=ids) | Q(datasource__in={s.datasource_id for s in some}), current=True
    )
    by_source = dict(read.values_list("pk", "datasource_id"))
    lags = lag_trends(list(by_source))
    found = standings(user, some, lags)
    new = CauseFilter(team=team_name, since=now - AGES_OUT_AFTER, waiting=True)
    causes = described(user, list(list_causes(user, new)[:CAUSES]), now)
    alarms = new_alarms(user, ids, now - AGES_OUT_AFTER)
    present = set(ids)
    sources = [source for source, datasource in by_source.items() if datasource in present]
    active = Task.objects.active().filter(pk__in={a.task_id for a in alarms}).values_list("pk", flat=True)
    drifts = {s.pk: s.group_drift for s in some if s.group_drift and not s.suspended and s.terminated_at is None}
    return Overview(
        at=now,
        team=team_name,
        problems=problems_of(found, causes, alarms, at_work=active if alarms else (), drifts=drifts),
        supervisors=some,
        standings=found,
        pool=shown(),
        records_per_s=sum(lags[s].records_per_s_now or 0 for s in sources if s in lags and now - lags[s].at <= STALE),
        day=day_of(sources, now),
        freshness=freshness(ids),
        changes=newest_entries(user, team, CHANGES),
        is_empty=not some and not ids,
    )
