"""What a query may use: the site's limits, and those of the teams whose datasources it reads, whichever is less."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.conf import settings

from controlplane.common.errors import NotAllowed, Unavailable
from controlplane.quotas.models import Quota
from controlplane.teams.models import Team

MAX_ROWS = 1_000_000  # of a result
TEMPORARY_PER_MEMORY = 4  # bytes on disk for each byte of memory
_MEBIBYTE = 1024 * 1024
_BY_TEAM = "This is the limit {limit} of team {team}. A site administrator can raise it."


@dataclass(frozen=True)
class Limit:
    """An amount, and who can raise it."""

    amount: float
    whose: str  # a sentence for who needs more


@dataclass(frozen=True)
class QueryLimits:
    """What one query may use, of all the teams whose datasources it reads."""

    seconds: Limit
    memory_bytes: Limit
    rows: Limit
    queries: dict[int, tuple[str, int]]  # by team that has a limit: its name, and how many may run at a time

    @property
    def temporary_bytes(self) -> int:
        return int(self.memory_bytes.amount * TEMPORARY_PER_MEMORY)


def site_limits() -> QueryLimits:
    """Files stay for a lease after their segments are replaced: no query runs longer."""
    seconds = float(min(settings.SQL_TIMEOUT, settings.SNAPSHOT_LEASE).total_seconds())
    setting = "Who runs Headgate can raise {}."
    return QueryLimits(
        seconds=Limit(seconds, setting.format("HEADGATE_SQL_TIMEOUT")),
        memory_bytes=Limit(settings.SQL_MEMORY_BYTES, setting.format("HEADGATE_SQL_MEMORY_MEBIBYTES")),
        rows=Limit(MAX_ROWS, "No result has more. Aggregate, or read it in parts."),
        queries={},
    )


def limits_of(teams: Iterable[Team]) -> QueryLimits:
    """Of a query that reads datasources of these teams. Raises ``NotAllowed`` if one of them may run none."""
    limits = site_limits()
    for quota in Quota.objects.filter(team__in=set(teams)).select_related("team"):
        for name in ("sql_seconds", "sql_mebibytes", "sql_rows", "sql_queries"):
            if getattr(quota, name) == 0:
                raise NotAllowed(f"Nobody can query team {quota.team.name}. {_whose(quota, name)}")
        if quota.sql_queries is not None:
            limits.queries[quota.team_id] = quota.team.name, quota.sql_queries
        limits = replace(
            limits,
            seconds=_lesser(limits.seconds, quota.sql_seconds, quota, "sql_seconds"),
            memory_bytes=_lesser(limits.memory_bytes, _bytes(quota.sql_mebibytes), quota, "sql_mebibytes"),
            rows=_lesser(limits.rows, quota.sql_rows, quota, "sql_rows"),
        )
    return limits


def _bytes(mebibytes: int | None) -> int | None:
    return None if mebibytes is None else mebibytes * _MEBIBYTE


def _lesser(limit: Limit, amount: int | None, quota: Quota, name: str) -> Limit:
    return limit if amount is None or amount >= limit.amount else Limit(amount, _whose(quota, name))


def _whose(quota: Quota, name: str) -> str:
    return _BY_TEAM.format(limit=name, team=quota.team.name)


def too_many_queries(limits: QueryLimits) -> Unavailable:
    """No place became free in a team with a limit."""
    teams = " and ".join(f"{name} ({most})" for name, most in limits.queries.values())
    return Unavailable(
        f"Too many queries run on datasources of team {teams}. Try again in a few seconds. A site administrator can "
        "raise the limit sql_queries."
    )
