"""How far each partition of a source has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from controlplane.datasources.models import Datasource
from controlplane.publishing.models import OFFSET_BITS, ProgressKey
from controlplane.sources.models import Source


@dataclass(frozen=True)
class PartitionProgress:
    """One partition of one source, whether anything of it was published or not."""

    source: Source
    partition: int
    settled: int  # offsets that have ended for good
    settled_from: int | None
    settled_upto: int | None  # the end of the highest of them
    holes: int  # gaps below that
    open_offsets: int  # how many offsets the gaps hold
    log_start_offset: int | None
    end_offset: int | None
    # Unsettled offsets from where the reader began to the log's end, both as the observer last saw them; None if it
    # never did.
    lag: int | None
    observed_at: datetime | None
    next_offset: int | None  # the stored offset of a source that has one


@dataclass(frozen=True)
class _Settled:
    count: int
    first: int | None
    upto: int | None
    ranges: int
    within: int  # those between where the reader began and the log's end


_NOTHING = _Settled(0, None, None, 0, 0)


def progress(of: Datasource | Source) -> list[PartitionProgress]:
    """Every partition of a source, or of all sources of a datasource (current ones first)."""
    sources = [of] if isinstance(of, Source) else list(of.sources.order_by("-current", "topic", "group", "-id"))
    keys = {(k.source_id, k.partition): k for k in ProgressKey.objects.filter(source__in=sources)}
    bounds = {(s.pk, int(p)): (begin, end) for s in sources for p, (_, begin, end) in s.bounds.items()}
    settled = _settled({key.pk: bounds.get(at, (0, 0)) for at, key in keys.items()})
    return [_of_partition(s, p, keys.get((s.pk, p)), settled) for s in sources for p in _partitions(s, keys)]


def _partitions(source: Source, keys: Iterable[tuple[int, int]]) -> list[int]:
    return sorted({*map(int, source.bounds), *(p for s, p in keys if s == source.pk)})


def _of_partition(
    source: Source, partition: int, key: ProgressKey | None, settled: Mapping[int, _Settled]
) -> PartitionProgress:
    start, begin, end = source.bounds.get(str(partition), (None, None, None))
    mine = settled.get(key.pk, _NOTHING) if key else _NOTHING
    return PartitionProgress(
        source=source,
        partition=partition,
        settled=mine.count,
        settled_from=mine.first,
        settled_upto=mine.upto,
        holes=max(0, mine.ranges - 1),
        open_offsets=0 if mine.first is None or mine.upto is None else mine.upto - mine.first - mine.count,
        log_start_offset=start,
        end_offset=end,
        lag=None if end is None else max(0, end - begin) - mine.within,
        observed_at=None if end is None else source.looked_at,
        next_offset=key.next_offset if key else None,
    )


def _settled(of: Mapping[int, tuple[int, int]]) -> dict[int, _Settled]:
    """By key: its settled offsets. Neighbouring rows that are not folded yet count as one range.

    ``of``: by key, between which offsets they are counted apart.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT k.id, s.settled, s.low - k.base, s.high - k.base, s.ranges, s.within
            FROM (
                SELECT id, id << {OFFSET_BITS} AS base, first, last
                FROM unnest(%s::int8[], %s::int8[], %s::int8[]) AS given(id, first, last)
            ) AS k, LATERAL (
                SELECT sum(upper(r) - lower(r))::int8, min(lower(r)), max(upper(r)), count(*),
                       sum(greatest(0, least(upper(r), k.base + k.last) - greatest(lower(r), k.base + k.first)))::int8
                FROM (
                    SELECT unnest(range_agg(span)) FROM publishing_settledrange
                    WHERE span && int8range(k.base, (k.id + 1) << {OFFSET_BITS})
                ) AS ranges(r)
            ) AS s(settled, low, high, ranges, within)
            WHERE s.ranges > 0
            """,
            [list(of), [first for first, _ in of.values()], [last for _, last in of.values()]],
        )
        return {key: _Settled(*values) for key, *values in cursor.fetchall()}
