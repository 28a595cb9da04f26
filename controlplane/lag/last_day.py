"""Lag and stored records of many sources over the last day, summed by group; and how fresh datasources are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db import connection

from controlplane.lag.samples import IS_FIRST, RESOLUTIONS, Resolution, stretch_start

DAY = timedelta(hours=24)
_MINUTE = timedelta(minutes=1)
_LONGEST_GAP = 3  # what was stored while nobody looked for longer is of no stretch
MAX_FINE_SOURCES = 25  # of more than these a day's fine samples are too many to sum while a page is waited for


@dataclass(frozen=True)
class DayPoint:
    """A stretch of time."""

    at: datetime
    lag: int  # the largest of each source, summed
    records_per_s: float  # that were stored


_DAY_SUMS = f"""
    WITH grouped AS (SELECT * FROM unnest(%(sources)s::int8[], %(groups)s::text[]) AS g(source_id, name)),
    samples AS (
        SELECT source_id, at, lag AS behind, date_bin(%(bin)s, at, 'epoch'::timestamptz) AS bin,
               CASE WHEN at - lag(at) OVER looks <= %(gap)s THEN greatest(0, processed - lag(processed) OVER looks)
                    WHEN lag(at) OVER looks IS NULL AND created_at > at - %(gap)s AND {IS_FIRST} THEN processed
                    ELSE 0 END AS stored
        FROM lag_lagsample JOIN sources_source AS source ON source.id = source_id
        WHERE source_id = ANY(%(sources)s) AND resolution_s = %(resolution)s AND at >= %(since)s - %(gap)s
        WINDOW looks AS (PARTITION BY source_id ORDER BY at)
    )
    SELECT name, bin, sum(behind)::int8, sum(stored)::int8
    FROM (
        SELECT bin, source_id, max(behind) AS behind, sum(stored) AS stored
        FROM samples WHERE bin >= %(since)s GROUP BY bin, source_id
    ) AS by_source JOIN grouped USING (source_id)
    GROUP BY name, bin ORDER BY name, bin
"""


def day_by_group(groups: Mapping[int, str], now: datetime) -> dict[str, list[DayPoint]]:
    """By group, in the order of time: ten minutes each, or an hour each where there are many sources; these are summed
    once a minute. The last stretch is over so far only. ``groups``: of each source.
    """
    if len(groups) <= MAX_FINE_SOURCES:
        return _query_sums(tuple(groups.items()), now, timedelta(minutes=10), RESOLUTIONS[1])
    return _hourly_sums(tuple(sorted(groups.items())), now.replace(second=0, microsecond=0))


def sum_groups(days: Iterable[Sequence[DayPoint]]) -> list[DayPoint]:
    """The sums of several groups."""
    lags: dict[datetime, int] = defaultdict(int)
    rates: dict[datetime, float] = defaultdict(float)
    for day in days:
        for point in day:
            lags[point.at] += point.lag
            rates[point.at] += point.records_per_s
    return [DayPoint(at, lags[at], rates[at]) for at in sorted(lags)]


@lru_cache(maxsize=64)
def _hourly_sums(groups: tuple[tuple[int, str], ...], now: datetime) -> dict[str, list[DayPoint]]:
    """Kept for all who look within the minute ``now``."""
    return _query_sums(groups, now, timedelta(hours=1), RESOLUTIONS[2])


def _query_sums(
    groups: Sequence[tuple[int, str]], now: datetime, stretch: timedelta, resolution: Resolution
) -> dict[str, list[DayPoint]]:
    parameters: dict[str, Any] = {
        "bin": stretch,
        "resolution": resolution.seconds,
        "gap": _LONGEST_GAP * resolution.length,
        "since": stretch_start(now, stretch) - DAY + stretch,
        "sources": [source for source, _ in groups],
        "groups": [name for _, name in groups],
    }
    with connection.cursor() as cursor:
        cursor.execute(_DAY_SUMS, parameters)
        rows = cursor.fetchall()
    days: dict[str, list[DayPoint]] = defaultdict(list)
    for name, at, lag, stored in rows:
        duration = max(min(stretch, now - at), _MINUTE)
        days[name].append(DayPoint(at, lag, stored / duration.total_seconds()))
    return dict(days)


@dataclass(frozen=True)
class Freshness:
    """When something was last published into a datasource."""

    datasource: str
    team: str
    at: datetime | None


_FRESHNESS = """
    SELECT d.name, t.name, (SELECT max(last_publish_at) FROM publishing_indexerfence WHERE datasource_id = d.id)
    FROM datasources_datasource d JOIN teams_team t ON t.id = d.team_id
    WHERE d.id = ANY(%s) ORDER BY 3 DESC NULLS LAST, 1
"""


def freshness(datasources: Sequence[int]) -> list[Freshness]:
    """The freshest first."""
    with connection.cursor() as cursor:
        cursor.execute(_FRESHNESS, [list(datasources)])
        return [Freshness(*values) for values in cursor.fetchall()]
