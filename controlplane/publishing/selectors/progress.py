"""How far each partition of a source has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import QuerySet

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
    first_offset: int | None
    end_offset: int | None
    ranges: int
    count_in_log: int  # those between where the reader began and the log's end


_NONE_SETTLED = _Settled(0, None, None, 0, 0)


def progress(owner: Datasource | Source) -> list[PartitionProgress]:
    """Every partition of a source, or of all sources of a datasource that somebody reads (current ones first)."""
    sources = [owner] if isinstance(owner, Source) else list(_read_sources(owner))
    keys = {(k.source_id, k.partition): k for k in ProgressKey.objects.filter(source__in=sources)}
    bounds = {(s.pk, int(p)): (begin, end) for s in sources for p, (_, begin, end) in s.bounds.items()}
    settled = _settled_by_key({key.pk: bounds.get(at, (0, 0)) for at, key in keys.items()})
    return [_partition_progress(s, p, keys.get((s.pk, p)), settled) for s in sources for p in _partitions(s, keys)]


def _read_sources(datasource: Datasource) -> QuerySet[Source]:
    return datasource.sources.filter(decoded_as=None).order_by("-current", "topic", "group", "-id")


def _partitions(source: Source, keys: Iterable[tuple[int, int]]) -> list[int]:
    return sorted({*map(int, source.bounds), *(p for s, p in keys if s == source.pk)})


def _partition_progress(
    source: Source, partition: int, key: ProgressKey | None, settled: Mapping[int, _Settled]
) -> PartitionProgress:
    start, begin, end = source.bounds.get(str(partition), (None, None, None))
    counts = settled.get(key.pk, _NONE_SETTLED) if key else _NONE_SETTLED
    return PartitionProgress(
        source=source,
        partition=partition,
        settled=counts.count,
        settled_from=counts.first_offset,
        settled_upto=counts.end_offset,
        holes=max(0, counts.ranges - 1),
        open_offsets=0
        if counts.first_offset is None or counts.end_offset is None
        else counts.end_offset - counts.first_offset - counts.count,
        log_start_offset=start,
        end_offset=end,
        lag=None if end is None else max(0, end - begin) - counts.count_in_log,
        observed_at=None if end is None else source.looked_at,
        next_offset=key.next_offset if key else None,
    )


def _settled_by_key(bounds_by_key: Mapping[int, tuple[int, int]]) -> dict[int, _Settled]:
    """By key: its settled offsets. Neighbouring rows that are not folded yet count as one range.

    ``bounds_by_key``: by key, between which offsets they are counted apart.
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
            [
                list(bounds_by_key),
                [first for first, _ in bounds_by_key.values()],
                [last for _, last in bounds_by_key.values()],
            ],
        )
        return {key: _Settled(*values) for key, *values in cursor.fetchall()}
