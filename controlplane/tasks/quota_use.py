"""What teams use of their quotas, and how tasks end when one is used up."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.quotas import services as quotas
from controlplane.quotas.services import LIMITS, limits_of_teams, quota_of, to_over_quota, usage_of_teams
from controlplane.tasks.capacity import Pool, running, shown_pool, slots_by_team, slots_of
from controlplane.tasks.events import report_quota
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Status, Task
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require


@dataclass(frozen=True)
class QuotaUse:
    """What a team uses now, by limit."""

    indexers: int  # of tasks that were launched, repairs and replays aside
    rows_a_day: int  # published since 0:00 UTC
    stored_bytes: int  # of segments in use


@dataclass(frozen=True)
class QuotaShare:
    """One limit and what is used of it."""

    name: str
    used: int | None  # None: of each query in SQL
    limit: int | None

    @property
    def percent(self) -> int | None:
        """Rounded down, 100 at most."""
        if self.used is None or self.limit is None:
            return None
        return 100 if not self.limit else min(100, 100 * self.used // self.limit)


def use_of(team: Team) -> QuotaUse:
    """By sums that publishes keep: no segment is counted."""
    published = usage_of_teams({team.pk})[team.pk]
    return QuotaUse(slots_by_team().get(team.name, 0), published.rows_a_day, published.stored_bytes)


def shares(user: User, team: Team) -> list[QuotaShare]:
    """Each limit with its use. Raises ``NotAllowed``: the team's admins see them."""
    require(user, Action.ADMINISTER, team)
    quota, used = quota_of(team), use_of(team)
    return [QuotaShare(name, getattr(used, name, None), getattr(quota, name)) for name in LIMITS]


def mark_used_up() -> None:
    """Whose quota is used up, or no longer. Its manual tasks are told to finish; supervisors ask by themselves."""
    for quota in quotas.update_used_up():
        manual = Task.objects.ingesting().filter(supervisor_id="", status=Status.RUNNING, goal=Goal.RUN)
        for task in manual.filter(datasource__team=quota.team_id):
            if set_goal(task, Goal.FINISH):
                report_quota(task, to_over_quota(quota).text)


def pool_of_team(team: str) -> Pool:
    """The places that the team's tasks have, with its own limit, and which of its tasks wait; of all for no name."""
    full_pool = shown_pool()
    if not team:
        return full_pool
    size, _ = limits_of_teams().get(team, (None, False))
    waiting = [waiter for waiter in full_pool.waiting if waiter.team == team]
    # On a cluster of Spark those that wait for a core are launched, and have none.
    tasks = running().filter(datasource__team__name=team)
    tasks = tasks.filter(without_slot_since=None) if full_pool.is_of_spark else tasks
    return Pool(size=size, used=sum(map(slots_of, tasks)), waiting=waiting, is_of_spark=full_pool.is_of_spark)
