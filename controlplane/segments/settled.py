"""Settled ranges: what of some offsets has ended already, holes between them, and the folding of neighbours."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.types.range import Int8Range

from controlplane.segments.models import OFFSET_BITS, ProgressKey, SettledRange, Source
from controlplane.segments.spans import Ranges, keys_of, spans, unspan
from ingestion.specs import offsets

logger = logging.getLogger(__name__)
FOLD_ABOVE = 1  # a key with one row has nothing to join


@dataclass(frozen=True)
class Hole:
    """Unsettled offsets below a settled one. ``since``: when the offset above them was settled."""

    partition: int
    start: int
    end: int
    since: datetime


def settled_among(
    source: Source, wanted: Mapping[int, Ranges], keys: Mapping[int, int] | None = None
) -> dict[int, Ranges]:
    """Per partition, the parts of ``wanted`` that are settled; partitions without any are left out.

    ``keys``: the partitions' progress keys, when the caller has them.
    """
    keys = keys_of(source, wanted) if keys is None else keys
    partition_of = {key: partition for partition, key in keys.items()}
    found: dict[int, Ranges] = {}
    for lower, upper in overlaps(spans(keys, wanted)):
        key, start, end = unspan(lower, upper)
        found.setdefault(partition_of[key], []).append((start, end))
    return {p: offsets.merged(ranges) for p, ranges in found.items()}


def overlaps(asked: list[Int8Range]) -> list[tuple[int, int]]:
    """The intersections of ``asked`` with what is settled, as raw bounds."""
    if not asked:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT greatest(lower(s.span), lower(a.span)), least(upper(s.span), upper(a.span))
            FROM unnest(%s::int8range[]) AS a(span) JOIN segments_settledrange s ON s.span && a.span
            """,
            [asked],
        )
        return list(cursor.fetchall())


def settle(settling: list[Int8Range]) -> None:
    """Insert ranges in one statement. PostgreSQL raises 23P01 when one overlaps what is settled."""
    if not settling:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO segments_settledrange (span, settled_at) SELECT unnest(%s::int8range[]), now()", [settling]
        )


def settled_ranges(key: ProgressKey) -> Ranges:
    """All settled ranges of one key, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lower(span), upper(span) FROM segments_settledrange WHERE span && %s ORDER BY lower(span)",
            [_whole(key.id)],
        )
        return offsets.merged((unspan(low, up)[1], unspan(low, up)[2]) for low, up in cursor.fetchall())


def holes(source: Source) -> list[Hole]:
    """Every gap between two settled ranges of a partition, with the time since which it is one."""
    out: list[Hole] = []
    for key in source.keys.order_by("partition"):
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT previous_end, lower(span), settled_at FROM (
                    SELECT span, settled_at, lag(upper(span)) OVER (ORDER BY lower(span)) AS previous_end
                    FROM segments_settledrange WHERE span && %s
                ) ranges WHERE lower(span) > previous_end ORDER BY lower(span)
                """,
                [_whole(key.id)],
            )
            for lower, upper, since in cursor.fetchall():
                _, start, end = unspan(lower, upper)
                out.append(Hole(key.partition, start, end, since))
    return out


def fold() -> int:
    """Join settled neighbours into one row each; returns how many rows that saved.

    Publishes go on meanwhile: an insert that touches a row being folded waits, then meets the joined row.
    """
    saved = 0
    for (key,) in _crowded_keys():
        try:
            with transaction.atomic():
                saved += _fold_key(key)
        except OperationalError as error:  # a deadlock with a publish, which is retried there: next time
            logger.info("key %s is not folded now: %s", key, error)
    return saved


def _crowded_keys() -> list[tuple[int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT lower(span) >> {OFFSET_BITS} AS key FROM segments_settledrange GROUP BY 1 HAVING count(*) > %s",
            [FOLD_ABOVE],
        )
        return list(cursor.fetchall())


def _fold_key(key: int) -> int:
    with connection.cursor() as cursor:
        # One folder a key at a time; the lock ends with the transaction.
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_FOLD_LOCK, key])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(
            """
            WITH ordered AS (
                SELECT id, span, settled_at,
                       lower(span) IS DISTINCT FROM lag(upper(span)) OVER (ORDER BY lower(span)) AS starts
                FROM segments_settledrange WHERE span && %s
            ), grouped AS (
                SELECT id, span, settled_at, count(*) FILTER (WHERE starts) OVER (ORDER BY lower(span)) AS run
                FROM ordered
            )
            SELECT array_agg(id), min(lower(span)), max(upper(span)), min(settled_at)
            FROM grouped GROUP BY run HAVING count(*) > 1
            """,
            [_whole(key)],
        )
        runs = cursor.fetchall()
        if not runs:
            return 0
        ids = [i for run in runs for i in run[0]]
        SettledRange.objects.filter(id__in=ids).delete()
        SettledRange.objects.bulk_create(
            [SettledRange(span=Int8Range(low, up), settled_at=at) for _, low, up, at in runs], batch_size=1000
        )
        return len(ids) - len(runs)


_FOLD_LOCK = 0x464F4C44


def _whole(key: int) -> Any:
    return Int8Range(key << OFFSET_BITS, (key + 1) << OFFSET_BITS)
