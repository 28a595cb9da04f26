"""Since when a large part of a source's records comes into quarantine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from controlplane.lag.samples import IS_FIRST, RESOLUTIONS, Resolution, retention_of
from controlplane.lag.trend import QUARANTINE_OVER


@dataclass(frozen=True)
class BadSince:
    """When a stretch of time began."""

    at: datetime  # exact to a minute, or to an hour where that is long ago
    at_least: bool = False  # it had begun already when the oldest sample that is kept was taken


# A stretch begins after the last sample at which the part of the last minutes was small, or before that: as far back as
# the part was large in each sample in which something ended, and something ended every few minutes.
_BEGINNINGS = f"""
    WITH seen AS (
        SELECT source_id, at, is_whole,
               ended - lag(ended, 1, CASE WHEN is_whole THEN 0 END) OVER by_time AS ended,
               quarantined - lag(quarantined, 1, CASE WHEN is_whole THEN 0 END) OVER by_time AS bad,
               ended - first_value(ended) OVER lately AS ended_lately,
               quarantined - first_value(quarantined) OVER lately AS bad_lately,
               at - first_value(at) OVER lately AS lately
        FROM lag_lagsample, LATERAL (
            SELECT created_at > now() - %(kept)s AND {IS_FIRST} AS is_whole
            FROM sources_source AS source WHERE id = source_id
        ) AS born
        WHERE source_id = ANY(%(sources)s) AND resolution_s = %(seconds)s
        WINDOW by_time AS (PARTITION BY source_id ORDER BY at),
               lately AS (PARTITION BY source_id ORDER BY at RANGE %(lately)s PRECEDING)
    ), judged AS (
        SELECT source_id, at, is_whole, bad > 0 AND bad >= %(much)s * ended AS is_bad,
               ended > 0 AND bad < %(much)s * ended
               OR ended_lately = 0 AND lately >= %(lately)s - %(length)s AS is_fine,
               max(at) FILTER (WHERE bad_lately < greatest(%(many)s, %(much)s * ended_lately))
               OVER (PARTITION BY source_id) AS small_at
        FROM seen
    ), ended AS (
        SELECT *, max(at) FILTER (WHERE is_fine AND at <= small_at) OVER (PARTITION BY source_id) AS fine_at FROM judged
    )
    SELECT source_id,
           coalesce(min(at) FILTER (WHERE is_bad AND at > coalesce(fine_at, '-infinity')), max(at)), min(at),
           bool_or(is_whole OR fine_at IS NOT NULL)
    FROM ended GROUP BY source_id
"""


def bad_since(sources: Collection[int], *, share: float, least: int) -> dict[int, BadSince]:
    """By source, of those that have samples.

    ``share``: the part of the records that ended which is a large one, from 0 to 1. ``least``: how many must have come
    into quarantine within ``QUARANTINE_OVER``. Two statements at most, for any number of sources.
    """
    beginnings: dict[int, BadSince] = {}
    for resolution in RESOLUTIONS[1:]:
        remaining = [s for s in sources if s not in beginnings or beginnings[s].at_least]
        if remaining:
            beginnings |= _beginnings(remaining, resolution, share, least)
    return beginnings


def _beginnings(sources: list[int], resolution: Resolution, share: float, least: int) -> dict[int, BadSince]:
    parameters: dict[str, Any] = {
        "sources": sources,
        "seconds": resolution.seconds,
        "length": resolution.length,
        "kept": retention_of(resolution),
        "lately": max(QUARANTINE_OVER, 2 * resolution.length),
        "much": share,
        "many": least,
    }
    with connection.cursor() as cursor:
        cursor.execute(_BEGINNINGS, parameters)
        rows = cursor.fetchall()
    return {source: BadSince(at if is_known else oldest, not is_known) for source, at, oldest, is_known in rows}
