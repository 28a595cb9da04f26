"""How far each partition of a source has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from controlplane.datasources.models import Datasource
from controlplane.segments.models import OFFSET_BITS, ProgressKey, Source


@dataclass(frozen=True)
class PartitionProgress:
    """One partition of one source.

    ``settled``: offsets that have ended for good, ``settled_upto`` the end of the highest of them. ``holes``: gaps
    below that, holding ``open_offsets`` offsets. ``lag``: unsettled offsets from the group's first settled one to the
    log's end as last observed; None while the end is unknown. ``next_offset``: the stored offset of a source that has
    one.
    """

    source: Source
    partition: int
    settled: int
    settled_from: int | None
    settled_upto: int | None
    holes: int
    open_offsets: int
    log_start_offset: int | None
    end_offset: int | None
    lag: int | None
    observed_at: datetime | None
    next_offset: int | None


@dataclass(frozen=True)
class _Settled:
    count: int
    first: int
    upto: int
    holes: int


def progress(of: Datasource | Source) -> list[PartitionProgress]:
    """Every partition of a source, or of all sources of a datasource (current ones first)."""
    sources = [of] if isinstance(of, Source) else list(of.sources.order_by("-current", "topic", "group", "-id"))
    keys = list(ProgressKey.objects.filter(source__in=sources).order_by("partition"))
    settled = _settled(keys)
    return [
        _of_partition(source, key, settled.get(key.pk))
        for source in sources
        for key in keys
        if key.source_id == source.pk
    ]


def _of_partition(source: Source, key: ProgressKey, settled: _Settled | None) -> PartitionProgress:
    first = settled.first if settled else None
    upto = settled.upto if settled else None
    count = settled.count if settled else 0
    return PartitionProgress(
        source=source,
        partition=key.partition,
        settled=count,
        settled_from=first,
        settled_upto=upto,
        holes=settled.holes if settled else 0,
        open_offsets=settled.upto - settled.first - count if settled else 0,
        log_start_offset=key.log_start_offset,
        end_offset=key.end_offset,
        lag=_lag(key, first, count),
        observed_at=key.observed_at,
        next_offset=key.next_offset,
    )


def _lag(key: ProgressKey, first: int | None, settled: int) -> int | None:
    if key.end_offset is None:
        return None
    unread = key.log_start_offset or 0 if key.next_offset is None else key.next_offset
    begin = unread if first is None else first
    return max(0, key.end_offset - begin - settled)  # the end may have been observed before the last publishes


def _settled(keys: list[ProgressKey]) -> dict[int, _Settled]:
    """By key: its settled offsets. Neighbouring rows that are not folded yet count as one range."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT k.id, s.settled, s.low - (k.id << {OFFSET_BITS}), s.high - (k.id << {OFFSET_BITS}), s.ranges
            FROM unnest(%s::int8[]) AS k(id), LATERAL (
                SELECT sum(upper(r) - lower(r))::int8, min(lower(r)), max(upper(r)), count(*)
                FROM (
                    SELECT unnest(range_agg(span)) FROM segments_settledrange
                    WHERE span && int8range(k.id << {OFFSET_BITS}, (k.id + 1) << {OFFSET_BITS})
                ) AS ranges(r)
            ) AS s(settled, low, high, ranges)
            WHERE s.ranges > 0
            """,
            [[k.pk for k in keys]],
        )
        return {key: _Settled(count, first, upto, ranges - 1) for key, count, first, upto, ranges in cursor.fetchall()}
