"""Lag and stored records of many sources over the last day, summed; and how fresh datasources are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db import connection

from controlplane.segments.lag_store import RESOLUTIONS

DAY = timedelta(hours=24)
FINE_SOURCES = 25  # of more than these a day's fine samples are too many to sum while a page is waited for


@dataclass(frozen=True)
class DayPoint:
    """A stretch of time."""

    at: datetime
    lag: int  # the largest of each source, summed
    records_per_s: float  # that were stored


_DAY = """
    WITH samples AS (
        SELECT source_id, at, lag AS behind, date_bin(%(bin)s, at, 'epoch'::timestamptz) AS bin,
               processed - lag(processed) OVER (PARTITION BY source_id ORDER BY at) AS stored
        FROM segments_lagsample WHERE source_id = ANY(%(sources)s) AND resolution_s = %(resolution)s AND at >= %(since)s
    )
    SELECT bin, sum(behind)::int8, sum(stored)::int8
    FROM (
        SELECT bin, source_id, max(behind) AS behind, sum(greatest(0, coalesce(stored, 0))) AS stored
        FROM samples GROUP BY bin, source_id
    ) AS by_source
    GROUP BY bin ORDER BY bin
"""


def day_of(sources: Sequence[int], now: datetime) -> list[DayPoint]:
    """In the order of time: ten minutes each, or an hour each where there are many sources; these are summed once a
    minute.
    """
    if len(sources) <= FINE_SOURCES:
        return _summed(sources, now, timedelta(minutes=10), RESOLUTIONS[1].seconds)
    return _by_the_hour(tuple(sources), now.replace(second=0, microsecond=0))


@lru_cache(maxsize=64)
def _by_the_hour(sources: tuple[int, ...], now: datetime) -> list[DayPoint]:
    """Kept for all who look within the minute ``now``."""
    return _summed(sources, now, timedelta(hours=1), RESOLUTIONS[2].seconds)


def _summed(sources: Sequence[int], now: datetime, stretch: timedelta, resolution_s: int) -> list[DayPoint]:
    asked: dict[str, Any] = {"bin": stretch, "sources": list(sources), "resolution": resolution_s, "since": now - DAY}
    with connection.cursor() as cursor:
        cursor.execute(_DAY, asked)
        rows = cursor.fetchall()
    return [DayPoint(at, lag, stored / stretch.total_seconds()) for at, lag, stored in rows]


@dataclass(frozen=True)
class Freshness:
    """When something was last published into a datasource."""

    datasource: str
    team: str
    at: datetime | None


_FRESHNESS = """
    SELECT d.name, t.name, (SELECT max(last_publish_at) FROM segments_indexerfence WHERE datasource_id = d.id)
    FROM datasources_datasource d JOIN teams_team t ON t.id = d.team_id
    WHERE d.id = ANY(%s) ORDER BY 3 DESC NULLS LAST, 1
"""


def freshness(datasources: Sequence[int]) -> list[Freshness]:
    """The freshest first."""
    with connection.cursor() as cursor:
        cursor.execute(_FRESHNESS, [list(datasources)])
        return [Freshness(*values) for values in cursor.fetchall()]
