"""Settled ranges: what of some offsets has ended already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import DateTimeField, F, Value
from django.db.models.functions import Greatest
from django.utils import timezone
from psycopg.types.range import Int8Range

from controlplane.common.database import cursor
from controlplane.publishing.completeness import Marks
from controlplane.publishing.models import OFFSET_BITS, ProgressKey
from controlplane.publishing.postgres_ranges import Ranges, check_range, get_or_create_keys, unspan
from controlplane.sources.models import Source
from ingestion.specs import offsets


def settled_among(source: int, ranges_by_partition: Mapping[int, Ranges]) -> dict[int, Ranges]:
    """Per partition, the parts of ``ranges_by_partition`` that are settled; partitions without any are left out."""
    with cursor() as c:
        return merge_by_partition(
            c.execute(_OVERLAPS_OF_SOURCE, (*range_columns(ranges_by_partition), source)).fetchall()
        )


def count_settled(wanted: Sequence[tuple[int, Mapping[int, Ranges]]]) -> list[int]:
    """For each source and its ranges, which do not overlap: how many of these offsets are settled. One statement."""
    columns: tuple[list[int], ...] = ([], [], [], [], [])
    for number, (source, ranges_by_partition) in enumerate(wanted):
        for row in zip(*range_columns(ranges_by_partition), strict=True):
            for column, value in zip(columns, (number, source, *row), strict=True):
                column.append(value)
    with cursor() as c:
        counts = dict(c.execute(_COUNTS, columns).fetchall()) if columns[0] else {}
    return [int(counts.get(number, 0)) for number in range(len(wanted))]


_TIME = DateTimeField(null=True)
_OVERLAPS = f"""
    SELECT a.partition, greatest(lower(s.span), lower(a.span)) - a.base, least(upper(s.span), upper(a.span)) - a.base
    FROM (
        SELECT w.partition, k.id << {OFFSET_BITS} AS base,
               int8range((k.id << {OFFSET_BITS}) + w.low, (k.id << {OFFSET_BITS}) + w.high) AS span
        FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS w(partition, low, high)
        JOIN publishing_progresskey k ON k.partition = w.partition AND k.source_id = ({{}})
    ) a JOIN publishing_settledrange s ON s.span && a.span
"""
_OVERLAPS_OF_SOURCE = _OVERLAPS.format("%s")
_COUNTS = f"""
    SELECT a.number, sum(least(upper(s.span), upper(a.span)) - greatest(lower(s.span), lower(a.span)))
    FROM (
        SELECT w.number, int8range((k.id << {OFFSET_BITS}) + w.low, (k.id << {OFFSET_BITS}) + w.high) AS span
        FROM unnest(%s::int4[], %s::int8[], %s::int4[], %s::int8[], %s::int8[])
             AS w(number, source, partition, low, high)
        JOIN publishing_progresskey k ON k.source_id = w.source AND k.partition = w.partition
    ) a JOIN publishing_settledrange s ON s.span && a.span
    GROUP BY a.number
"""
# After ``range_columns``, of an indexer's task and number; the rows are for ``merge_by_partition``.
OVERLAPS_OF_INDEXER = _OVERLAPS.format(
    "SELECT source_id FROM publishing_indexerfence WHERE task_id = %s AND number = %s"
)


def range_columns(ranges_by_partition: Mapping[int, Ranges]) -> tuple[list[int], list[int], list[int]]:
    """Partitions, starts and ends. Raises ``InvalidInput`` for a range that can't be."""
    flat = [(p, *check_range(start, end)) for p, ranges in ranges_by_partition.items() for start, end in ranges]
    return [f[0] for f in flat], [f[1] for f in flat], [f[2] for f in flat]


def merge_by_partition(rows: Iterable[tuple[Any, ...]]) -> dict[int, Ranges]:
    """Of rows of partition, start and end."""
    settled: dict[int, Ranges] = {}
    for partition, start, end in rows:
        settled.setdefault(partition, []).append((start, end))
    return {p: offsets.merged(ranges) for p, ranges in settled.items()}


def settled_ranges(key: ProgressKey) -> Ranges:
    """All settled ranges of one key, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lower(span), upper(span) FROM publishing_settledrange WHERE span && %s ORDER BY lower(span)",
            [_key_range(key.id)],
        )
        return offsets.merged((unspan(low, up)[1], unspan(low, up)[2]) for low, up in cursor.fetchall())


# What has not changed is written now and then, for those who ask when it was seen.
_STORE_BOUNDS = """
    UPDATE publishing_progresskey k SET log_start_offset = seen.low, end_offset = seen.high, observed_at = now()
    FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS seen(partition, low, high)
    WHERE k.source_id = %s AND k.partition = seen.partition AND (
        (k.log_start_offset, k.end_offset) IS DISTINCT FROM (seen.low, seen.high)
        OR k.observed_at IS NULL OR k.observed_at < now() - interval '10 seconds'
    )
"""


def store_bounds(
    source: Source,
    starts: Mapping[int, int],
    begins: Mapping[int, int],
    ends: Mapping[int, int],
    undecided: int,
    complete: tuple[datetime | None, Marks] | None = None,
) -> None:
    """Keep where the log of each partition begins and ends now, and where the reader began.

    ``undecided``: offsets behind an open transaction, of all partitions. ``complete``: see ``Marks.advanced``.
    """
    bounds = {str(p): [starts[p], begins[p], end] for p, end in ends.items()}
    fields: dict[str, Any] = {"looked_at": timezone.now(), "bounds": bounds, "undecided": undecided}
    if complete is not None:
        until, marks = complete
        # What has ended has ended for good: it is never less than it was. PostgreSQL leaves out a null.
        fields |= {"marks": marks.stored(), "complete_until": Greatest(F("complete_until"), Value(until, _TIME))}
    Source.objects.filter(pk=source.pk).update(**fields)
    with connection.cursor() as cursor:
        cursor.execute(_STORE_BOUNDS, [list(ends), [starts[p] for p in ends], list(ends.values()), source.pk])


@transaction.atomic
def store_begins(source: Source, offsets: Mapping[int, int]) -> None:
    """Keep where a share group begins, by partition: of several specs before it reads, the earliest of their places.

    Nothing is changed of one that has read before.
    """
    Source.objects.select_for_update().get(pk=source.pk)
    keys = get_or_create_keys(source.pk, offsets)
    with cursor() as c:
        c.execute(
            "UPDATE publishing_progresskey k SET begin_offset = least(k.begin_offset, w.begin)"
            " FROM unnest(%s::int8[], %s::int8[]) AS w(key, begin) WHERE k.id = w.key AND NOT EXISTS ("
            "SELECT 1 FROM publishing_settledrange s JOIN publishing_progresskey o ON o.source_id = k.source_id"
            f" AND lower(s.span) >= o.id << {OFFSET_BITS} AND lower(s.span) < (o.id + 1) << {OFFSET_BITS})",
            ([keys[p] for p in offsets], list(offsets.values())),
        )


def _key_range(key: int) -> Any:
    return Int8Range(key << OFFSET_BITS, (key + 1) << OFFSET_BITS)
