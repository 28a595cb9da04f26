"""The series of a source's lag: one sample every few seconds, coarser ones beside it that are kept for longer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from controlplane.lag.models import LagSample
from controlplane.sources.models import Source


@dataclass(frozen=True)
class Resolution:
    """How long a stretch of time a sample stands for."""

    name: str
    seconds: int
    retention: timedelta | None  # None, as long as the setting says

    @property
    def length(self) -> timedelta:
        return timedelta(seconds=self.seconds)


RESOLUTIONS = (
    Resolution("5s", 5, timedelta(hours=2)),
    Resolution("1m", 60, timedelta(hours=48)),
    Resolution("1h", 3600, None),
)
FINEST = RESOLUTIONS[0]
RECENT_WINDOW = timedelta(minutes=5)  # what is told of a reader as of now is told by its samples of so long
# Of a row ``source``. Indexers that go on with a topic that was made again bring their counters along.
IS_FIRST = """
    NOT EXISTS (
        SELECT FROM sources_source AS older WHERE older.datasource_id = source.datasource_id AND older.id < source.id
        AND (older.kind, older."group", older.topic) = (source.kind, source."group", source.topic)
    )
"""
_STARTS = f"SELECT id, created_at FROM sources_source AS source WHERE id = ANY(%s) AND {IS_FIRST}"


def retention_of(resolution: Resolution) -> timedelta:
    """For how long samples of this resolution are kept."""
    longest: timedelta = settings.LAG_RETENTION
    return longest if resolution.retention is None else min(resolution.retention, longest)


def store_sample(
    source: Source,
    lags: Mapping[int, int],
    *,
    more: int = 0,
    in_flight: int = 0,
    passed: Mapping[int, int] | None = None,
) -> bool:
    """Keep what was seen just now; nothing if these few seconds have a sample already.

    ``lags``: offsets by partition. ``more``: what belongs to the lag and to none of them. ``in_flight``: records that
    indexers hold. ``passed``: how much of ``lags`` lies before the stored offset. Returns whether what is told of the
    reader as of now may have changed by that: it is told by several samples, and changes long after the last record.
    """
    now = timezone.now()
    by_number, passed_by_number = _by_number(lags), _by_number(passed or {})
    values: list[Any] = [now, sum(by_number) + more, by_number, passed_by_number, in_flight]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_ONCE, [source.pk, FINEST.seconds, stretch_start(now, FINEST.length), *values, source.pk])
        if not cursor.rowcount:
            return False
        for coarser in RESOLUTIONS[1:]:
            cursor.execute(
                _UPSERT_LARGEST, [source.pk, coarser.seconds, stretch_start(now, coarser.length), *values, source.pk]
            )
        cursor.execute(_HAS_CHANGED, [source.pk, FINEST.seconds, now - RECENT_WINDOW - _MAX_SAMPLE_GAP])
        return bool(cursor.fetchone()[0])


def _by_number(offsets: Mapping[int, int]) -> list[int]:
    return [offsets.get(partition, 0) for partition in range(max(offsets, default=-1) + 1)]


def stretch_start(time: datetime, stretch: timedelta) -> datetime:
    """Where the stretch of this length begins that ``time`` lies in."""
    seconds = stretch.total_seconds()
    return datetime.fromtimestamp(time.timestamp() // seconds * seconds, UTC)


_STORED = "published + rolled_up - further_rows"  # records
_INSERT = f"""
    INSERT INTO lag_lagsample AS kept (
        source_id, resolution_s, at, observed_at, lag, partitions, passed, in_flight, processed, beside,
        redelivered, quarantined, ended
    )
    SELECT %s, %s, %s, %s, %s, %s::int8[], %s::int8[], %s, coalesce(sum({_STORED}), 0),
           coalesce(sum({_STORED}) FILTER (WHERE bounded OR rewinds), 0),
           coalesce(sum(redelivered + redelivered_before + redelivered_now), 0),
           coalesce(sum(quarantined) FILTER (WHERE NOT replay), 0),
           coalesce(sum({_STORED} + thrown_away + unparseable) FILTER (WHERE NOT replay), 0)
    FROM publishing_indexerfence WHERE source_id = %s
"""
_INSERT_ONCE = f"{_INSERT} ON CONFLICT DO NOTHING"
_HAS_CHANGED = """
    SELECT count(DISTINCT (lag, in_flight, processed, quarantined)) > 1 FROM lag_lagsample
    WHERE source_id = %s AND resolution_s = %s AND at > %s
"""
_MAX_SAMPLE_GAP = timedelta(seconds=15)  # the first look at which all of ``RECENT_WINDOW`` is the same counts, too
# A peak is what a chart of days must still show; the five sums are the last ones, so that rates come out right.
_UPSERT_LARGEST = f"""{_INSERT}
    ON CONFLICT (source_id, resolution_s, at) DO UPDATE SET
        observed_at = excluded.observed_at, processed = excluded.processed, beside = excluded.beside,
        redelivered = excluded.redelivered, quarantined = excluded.quarantined, ended = excluded.ended,
        in_flight = greatest(kept.in_flight, excluded.in_flight), lag = greatest(kept.lag, excluded.lag),
        partitions = CASE WHEN excluded.lag > kept.lag THEN excluded.partitions ELSE kept.partitions END,
        passed = CASE WHEN excluded.lag > kept.lag THEN excluded.passed ELSE kept.passed END
"""


def drop_old() -> int:
    """Delete what has been kept for long enough; returns how many samples that were."""
    now = timezone.now()
    old = Q()
    for resolution in RESOLUTIONS:
        old |= Q(resolution_s=resolution.seconds, at__lt=now - retention_of(resolution))
    return LagSample.objects.filter(old).delete()[0]


def source_starts(sources: Iterable[int]) -> dict[int, datetime]:
    """When readers began: none of their counters was above nothing then, as if somebody had looked.

    By source; those that followed on another one of the same topic's name are left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STARTS, [list(sources)])
        return dict(cursor.fetchall())
