"""Offsets that are not settled: holes between settled ranges, and what lies before the first and after the last.

A partition may have a hundred thousand settled ranges (each transaction leaves a marker): nothing here reads them all
into memory, and what is asked every few seconds walks the index in the order of offsets and stops early.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from controlplane.common.database import cursor
from controlplane.publishing.models import OFFSET_BITS
from controlplane.sources.models import Source
from ingestion.specs import offsets


@dataclass(frozen=True)
class OffsetGap:
    """Unsettled offsets."""

    partition: int
    start: int
    end: int
    since: datetime  # when the offset above them was settled


@dataclass(frozen=True)
class Extent:
    """What is settled of a partition."""

    start: int  # its lowest settled offset
    end: int  # one above the highest


@dataclass(frozen=True)
class Unsettled:
    """A partition between two offsets: how many are ``settled`` and how many not, and the first unsettled ranges."""

    settled: int
    lag: int
    ranges: list[offsets.Range]


_KEY = f"lower(span) >= k.base AND lower(span) < k.base + (1::int8 << {OFFSET_BITS})"
_KEYS = (
    f"(SELECT partition, id << {OFFSET_BITS} AS base, log_start_offset, begin_offset FROM publishing_progresskey"
    " WHERE source_id = %s) k"
)
_HOLES = f"""
    SELECT k.partition, h.low - k.base, h.high - k.base, h.settled_at FROM {_KEYS}, LATERAL (
        SELECT low, high, settled_at FROM (
            SELECT lag(upper(span)) OVER (ORDER BY lower(span)) AS low, lower(span) AS high, settled_at
            FROM publishing_settledrange WHERE {_KEY}
        ) r WHERE high > low AND settled_at < %s ORDER BY high LIMIT %s
    ) h ORDER BY 1, 2 LIMIT %s
"""
_LEADING = f"""
    SELECT k.partition, b.begin, f.first - k.base, f.settled_at FROM {_KEYS}, LATERAL (
        SELECT lower(span) AS first, settled_at FROM publishing_settledrange WHERE {_KEY} ORDER BY lower(span) LIMIT 1
    ) f, LATERAL (
        SELECT coalesce(k.begin_offset, least(k.log_start_offset, (s.bounds -> k.partition::text ->> 1)::int8)) AS begin
        FROM sources_source s WHERE s.id = %s
    ) b WHERE b.begin < f.first - k.base AND f.settled_at < %s ORDER BY 1
"""
_EXTENTS = f"""
    SELECT k.source_id, k.partition, f.low - k.base, l.high - k.base FROM (
        SELECT source_id, partition, id << {OFFSET_BITS} AS base FROM publishing_progresskey WHERE source_id = ANY(%s)
    ) k,
    LATERAL (SELECT lower(span) AS low FROM publishing_settledrange WHERE {_KEY} ORDER BY lower(span) LIMIT 1) f,
    LATERAL (SELECT upper(span) AS high FROM publishing_settledrange WHERE {_KEY} ORDER BY lower(span) DESC LIMIT 1) l
"""
_WITHIN = "SELECT * FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS w(number, first, last)"
_COUNTS = f"""
    SELECT k.partition, s.all_of_them::int8, s.within::int8
    FROM {_KEYS} JOIN ({_WITHIN}) w ON w.number = k.partition, LATERAL (
        SELECT sum(upper(span) - lower(span)) AS all_of_them,
               sum(greatest(0, least(upper(span), k.base + w.last) - greatest(lower(span), k.base + w.first))) AS within
        FROM publishing_settledrange WHERE {_KEY}
    ) s WHERE s.within IS NOT NULL
"""
_GAPS = f"""
    WITH k AS (SELECT * FROM {_KEYS} JOIN ({_WITHIN}) w ON w.number = k.partition)
    SELECT k.partition, g.low - k.base, g.high - k.base FROM k, LATERAL (
        SELECT low, high FROM (
            SELECT lag(upper(span), 1, k.base + k.first) OVER (ORDER BY lower(span)) AS low, lower(span) AS high
            FROM publishing_settledrange WHERE {_KEY} AND upper(span) > k.base + k.first
        ) r WHERE high > low ORDER BY high LIMIT %s
    ) g
    UNION ALL
    SELECT k.partition, greatest(k.first, (
        SELECT upper(span) - k.base FROM publishing_settledrange WHERE {_KEY} ORDER BY lower(span) DESC LIMIT 1
    )), k.last FROM k
    ORDER BY 1, 2
"""


def offset_gaps(source: Source, before: datetime, most: int) -> list[OffsetGap]:
    """Gaps between two settled ranges of a partition that have been holes since ``before``; ``most`` of them."""
    with cursor() as c:
        rows = c.execute(_HOLES, (source.pk, before, most, most)).fetchall()
    return [OffsetGap(*row) for row in rows]


def leading_gaps(source: Source, before: datetime) -> list[OffsetGap]:
    """What is left between where a partition's reader began, as far as it was seen, and its first settled range."""
    with cursor() as c:
        rows = c.execute(_LEADING, (source.pk, source.pk, before)).fetchall()
    return [OffsetGap(*row) for row in rows]


def extents(source: Source) -> dict[int, Extent]:
    """By partition, of those that have anything settled."""
    return extents_of([source.pk])[source.pk]


def extents_of(sources: Collection[int]) -> dict[int, dict[int, Extent]]:
    """Of each source, by partition, of those that have anything settled. One statement."""
    found: dict[int, dict[int, Extent]] = {source: {} for source in sources}
    if found:
        with cursor() as c:
            for source, partition, low, high in c.execute(_EXTENTS, (list(found),)).fetchall():
                found[source][partition] = Extent(low, high)
    return found


def unsettled(source: Source, within: Mapping[int, offsets.Range], most: int) -> dict[int, Unsettled]:
    """By partition, what of the offsets ``within`` is not settled yet: how many, and the first ``most`` ranges.

    A range that is empty or ends before it starts has nothing unsettled.
    """
    wide = {p: (start, max(start, end)) for p, (start, end) in within.items()}
    columns = (list(wide), [start for start, _ in wide.values()], [end for _, end in wide.values()])
    with cursor() as c:
        counts = {p: (all_, inside) for p, all_, inside in c.execute(_COUNTS, (source.pk, *columns)).fetchall()}
    lags = {p: end - start - counts.get(p, (0, 0))[1] for p, (start, end) in wide.items()}
    open_ = {p: wide[p] for p, lag in lags.items() if lag}
    ranges = _unsettled_ranges(source, open_, most)
    return {p: Unsettled(counts.get(p, (0, 0))[0], lag, ranges.get(p, [])) for p, lag in lags.items()}


def _unsettled_ranges(source: Source, within: Mapping[int, offsets.Range], most: int) -> dict[int, list[offsets.Range]]:
    if not within:
        return {}
    columns = ([*within], [start for start, _ in within.values()], [end for _, end in within.values()])
    with cursor() as c:
        gaps = c.execute(_GAPS, (source.pk, *columns, most)).fetchall()
    read = {partition for partition, _, _ in gaps}
    unread = [(p, start, end) for p, (start, end) in within.items() if p not in read]
    offset_gaps: dict[int, list[offsets.Range]] = {}
    for partition, low, high in (*gaps, *unread):
        end = min(high, within[partition][1])
        if low < end:
            offset_gaps.setdefault(partition, []).append((low, end))
    return {partition: ranges[:most] for partition, ranges in offset_gaps.items()}
