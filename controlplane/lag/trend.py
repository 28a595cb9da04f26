"""Where the lags of many sources go, in a few statements for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection

from controlplane.lag.samples import IS_FIRST, RECENT_WINDOW, RESOLUTIONS

MINUTE = timedelta(minutes=1)
QUARANTINE_OVER = timedelta(minutes=15)
SAMPLE_GAP = timedelta(seconds=15)  # that looks are apart, at most, while a task runs


@dataclass(frozen=True)
class LagTrend:
    """A source's lag as it was seen last, against some minutes before."""

    at: datetime
    lag: int  # offsets that are not settled
    unread: int  # the least, within the last minute, of ``ahead`` that no indexer held
    # ``ahead`` at most five minutes earlier, without what was skipped since; None: there is no earlier sample.
    before: int | None = None
    elapsed: timedelta = timedelta()  # how much earlier
    # That the reader stored over that time, or since it began within it, or the last minute if that is longer.
    records_per_s: float | None = None
    # Over the last minute, by backfills too; None: nobody looked a minute ago.
    records_per_s_now: float | None = None
    # Of the records that ended within the last ``QUARANTINE_OVER``: how many there are, and came into quarantine.
    ended: int = 0
    quarantined: int = 0
    read_in_minute: int | None = None  # by how much what no indexer held became less within the last minute
    ended_per_s: float | None = None  # records, stored or not, over the time that ``records_per_s`` has
    passed: int = 0  # of ``lag``, what lies before the stored offsets: the reader has passed it, only backfills read it
    passed_stays: bool = False  # nothing of that was read within the last minute
    taken_per_s: float | None = None  # records that the reader has stored or holds, over the time of ``records_per_s``

    @property
    def ahead(self) -> int:
        """Offsets that are not settled, and that the reader has to read."""
        return self.lag - self.passed

    @property
    def is_too_new(self) -> bool:
        """Whether it was not looked at for long enough to say a rate."""
        return self.elapsed < MINUTE - SAMPLE_GAP

    @property
    def has_full_window(self) -> bool:
        """Whether it was looked at over all of the last minutes."""
        return self.elapsed >= RECENT_WINDOW - SAMPLE_GAP


_PASSED = "(SELECT coalesce(sum(n), 0)::int8 FROM unnest(passed) AS n)"
_UNREAD = f"greatest(0, lag - in_flight - {_PASSED})"
_TRENDS = f"""
    SELECT s.id, newest.observed_at, newest.lag, recent.unread,
           earlier.ahead - least(earlier.ahead, greatest(0, newest.passed - earlier.passed)),
           newest.observed_at - earlier.observed_at,
           greatest(0, newest.stored - CASE WHEN is_new THEN 0 ELSE earlier.stored END),
           newest.observed_at - CASE WHEN is_new THEN born.at ELSE earlier.observed_at END,
           is_new OR earlier.processed = 0,
           greatest(0, newest.ended - CASE WHEN began_lately THEN 0 ELSE long_ago.ended END),
           greatest(0, newest.quarantined - CASE WHEN began_lately THEN 0 ELSE long_ago.quarantined END),
           CASE WHEN minute.observed_at IS NOT NULL THEN greatest(0, newest.processed - minute.processed)
                / extract(epoch FROM newest.observed_at - minute.observed_at)
                WHEN is_new AND born.at <= newest.observed_at - %(minute)s THEN newest.processed
                / extract(epoch FROM newest.observed_at - born.at) END,
           minute.unread - newest.unread - greatest(0, newest.passed - minute.passed),
           greatest(0, newest.ended - CASE WHEN is_new THEN 0 ELSE earlier.ended END), newest.passed,
           newest.passed >= minute.passed,
           greatest(0, newest.taken - CASE WHEN is_new THEN 0 ELSE earlier.taken END)
    FROM unnest(%(sources)s::int8[]) AS s(id),
    LATERAL (
        SELECT at, observed_at, lag, {_PASSED} AS passed, {_UNREAD} AS unread, processed, processed - beside AS stored,
               processed - beside + in_flight AS taken, quarantined, ended FROM lag_lagsample
        WHERE source_id = s.id AND resolution_s = %(finest)s ORDER BY at DESC LIMIT 1
    ) AS newest,
    LATERAL (
        SELECT min({_UNREAD}) AS unread FROM lag_lagsample
        WHERE source_id = s.id AND resolution_s = %(finest)s AND at > newest.at - %(minute)s
    ) AS recent
    LEFT JOIN LATERAL (
        SELECT observed_at, lag - {_PASSED} AS ahead, {_PASSED} AS passed, processed, processed - beside AS stored,
               processed - beside + in_flight AS taken, ended FROM lag_lagsample
        WHERE source_id = s.id AND resolution_s = %(finest)s AND at >= newest.at - %(lately)s AND at < newest.at
        ORDER BY at LIMIT 1
    ) AS earlier ON true
    LEFT JOIN LATERAL (
        SELECT observed_at, processed, {_UNREAD} AS unread, {_PASSED} AS passed FROM lag_lagsample
        WHERE source_id = s.id AND resolution_s = %(finest)s AND at >= newest.at - %(lately)s
          AND observed_at <= newest.observed_at - %(minute)s ORDER BY at DESC LIMIT 1
    ) AS minute ON true
    LEFT JOIN LATERAL (
        SELECT quarantined, ended FROM lag_lagsample
        WHERE source_id = s.id AND resolution_s = %(finest)s AND at >= newest.at - %(quarantine)s AND at < newest.at
        ORDER BY at LIMIT 1
    ) AS long_ago ON true,
    LATERAL (
        SELECT created_at AS at, created_at >= newest.at - %(lately)s
               AND created_at < coalesce(earlier.observed_at, newest.observed_at) AND {IS_FIRST} AS is_new,
               created_at >= newest.at - %(quarantine)s AND {IS_FIRST} AS began_lately
        FROM sources_source AS source WHERE id = s.id
    ) AS born
"""


def lag_trends(sources: Sequence[int]) -> dict[int, LagTrend]:
    """By source, of those that have samples of the last hours."""
    parameters: dict[str, Any] = {
        "sources": list(sources),
        "finest": RESOLUTIONS[0].seconds,
        "minute": MINUTE,
        "lately": RECENT_WINDOW,
        "quarantine": QUARANTINE_OVER,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TRENDS, parameters)
        return {source: _trend(*values) for source, *values in cursor.fetchall()}


def _trend(
    at: datetime,
    lag: int,
    unread: int,
    before: int | None,
    over: timedelta | None,
    stored: int | None,
    stored_over: timedelta | None,
    began: bool | None,
    ended: int | None,
    quarantined: int | None,
    now: Decimal | None,
    read: int | None,
    ended_since: int | None,
    passed: int,
    passed_stays: bool | None,
    taken: int | None,
) -> LagTrend:
    """``began``: nothing had been stored before."""
    if stored is None or not stored_over:
        return LagTrend(at, lag, unread, passed=passed)
    over_s = max(stored_over, MINUTE).total_seconds()
    rate = stored / over_s
    rate_now = float(now) if now is not None else rate if began and stored_over < MINUTE else None
    ended_rate, taken_rate = (ended_since or 0) / over_s, (taken or 0) / over_s
    elapsed = over or timedelta()
    counted = (ended or 0, quarantined or 0, read, ended_rate)
    return LagTrend(at, lag, unread, before, elapsed, rate, rate_now, *counted, passed, bool(passed_stays), taken_rate)


# The finest resolution that has such a sample. The coarser ones keep the largest lag of their stretch.
_LAST_WITHIN = f"""
    SELECT s.id, coalesce(
        (SELECT max(observed_at) FROM lag_lagsample WHERE source_id = s.id AND resolution_s = %(finest)s
         AND {_UNREAD} <= s.most),
        (SELECT max(at) FROM lag_lagsample WHERE source_id = s.id AND resolution_s = %(fine)s
         AND at > now() - interval '3 hours' AND {_UNREAD} <= s.most),
        (SELECT max(at) FROM lag_lagsample WHERE source_id = s.id AND resolution_s = %(coarse)s
         AND {_UNREAD} <= s.most)
    )
    FROM unnest(%(sources)s::int8[], %(most)s::float8[]) AS s(id, most)
"""


def last_time_within(most: Mapping[int, float]) -> dict[int, datetime | None]:
    """When each source's reader last had no more than so much unread: for two hours exact, then to a minute or an hour.

    None: never, as far back as samples go.
    """
    finest, fine, coarse = RESOLUTIONS
    parameters: dict[str, Any] = {
        "sources": list(most),
        "most": [float(n) for n in most.values()],  # a list of fractions and whole numbers is none to the driver
        "finest": finest.seconds,
        "fine": fine.seconds,
        "coarse": coarse.seconds,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LAST_WITHIN, parameters)
        return dict(cursor.fetchall())
