"""What teams use of their quotas, and how tasks end when one is used up."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.quotas import services as quotas
from controlplane.quotas.services import LIMITS, limits_of_teams, published_by, quota_of, stopped_by
from controlplane.tasks.capacity import Pool, places_by_team, running, shown, slots_of
from controlplane.tasks.events import report_quota
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Status, Task
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require


@dataclass(frozen=True)
class Use:
    """What a team uses now, by limit."""

    indexers: int  # of tasks that were launched, repairs and replays aside
    rows_a_day: int  # published since 0:00 UTC
    stored_bytes: int  # of segments in use


@dataclass(frozen=True)
class Share:
    """One limit and what is used of it."""

    name: str
    used: int
    limit: int | None

    @property
    def percent(self) -> int | None:
        """Rounded down, 100 at most."""
        return None if self.limit is None else 100 if not self.limit else min(100, 100 * self.used // self.limit)


def use_of(team: Team) -> Use:
    """By sums that publishes keep: no segment is counted."""
    published = published_by({team.pk})[team.pk]
    return Use(places_by_team().get(team.name, 0), published.rows_a_day, published.stored_bytes)


def shares(user: User, team: Team) -> list[Share]:
    """Each limit with its use. Raises ``NotAllowed``: the team's admins see them."""
    require(user, Action.ADMINISTER, team)
    quota, used = quota_of(team), use_of(team)
    return [Share(name, getattr(used, name), getattr(quota, name)) for name in LIMITS]


def look() -> None:
    """Whose quota is used up, or no longer. Its manual tasks are told to finish; supervisors ask by themselves."""
    for quota in quotas.look():
        by_hand = Task.objects.reading().filter(supervisor_id="", status=Status.RUNNING, goal=Goal.RUN)
        for task in by_hand.filter(datasource__team=quota.team_id):
            if set_goal(task, Goal.FINISH):
                report_quota(task, stopped_by(quota).text)


def shown_of(team: str) -> Pool:
    """The places that the team's tasks have, with its own limit, and which of its tasks wait; of all for no name."""
    whole = shown()
    if not team:
        return whole
    size, _ = limits_of_teams().get(team, (None, False))
    waiting = [asking for asking in whole.waiting if asking.team == team]
    # On a cluster of Spark those that wait for a core are launched, and have none.
    mine = running().filter(datasource__team__name=team)
    mine = mine.filter(without_slot_since=None) if whole.of_spark else mine
    return Pool(size=size, used=sum(map(slots_of, mine)), waiting=waiting, of_spark=whole.of_spark)
