"""Settled ranges: what of some offsets has ended already, holes between them, and the folding of neighbours."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction
from django.utils import timezone
from psycopg.types.range import Int8Range

from controlplane.common.database import cursor, pipeline
from controlplane.segments.models import OFFSET_BITS, ProgressKey, SettledRange, Source
from controlplane.segments.spans import Ranges, checked, keys_of, unspan
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


Seen = tuple[bool, list[str]]


def look(
    source: int, publish_id: uuid.UUID, settling: Mapping[int, Ranges], others: Iterable[int]
) -> tuple[Seen | None, dict[int, int], dict[int, Ranges]]:
    """What a publish must know before it writes, in one round trip.

    Returns whether its id was seen (abandoned, segment ids), the progress keys of its partitions (``others`` too), and
    what of ``settling`` is settled already.
    """
    partitions = sorted({*settling, *others})
    with pipeline() as cursors:
        seen = cursors().execute("SELECT abandoned, segment_ids FROM segments_publish WHERE id = %s", (publish_id,))
        keys = cursors().execute(_KEYS, (source, partitions))
        overlaps = cursors().execute(_OVERLAPS, (*_columns(settling), source))
    answer = seen.fetchone()
    found = dict(keys.fetchall())
    if len(found) < len(partitions):
        found = keys_of(source, partitions)
    known = None if answer is None else (answer[0], json.loads(answer[1]))
    return known, found, _by_partition(overlaps.fetchall())


def settled_among(source: int, wanted: Mapping[int, Ranges]) -> dict[int, Ranges]:
    """Per partition, the parts of ``wanted`` that are settled; partitions without any are left out."""
    with cursor() as c:
        return _by_partition(c.execute(_OVERLAPS, (*_columns(wanted), source)).fetchall())


_KEYS = "SELECT partition, id FROM segments_progresskey WHERE source_id = %s AND partition = ANY(%s)"
_OVERLAPS = f"""
    SELECT a.partition, greatest(lower(s.span), lower(a.span)) - a.base, least(upper(s.span), upper(a.span)) - a.base
    FROM (
        SELECT w.partition, k.id << {OFFSET_BITS} AS base,
               int8range((k.id << {OFFSET_BITS}) + w.low, (k.id << {OFFSET_BITS}) + w.high) AS span
        FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS w(partition, low, high)
        JOIN segments_progresskey k ON k.partition = w.partition AND k.source_id = %s
    ) a JOIN segments_settledrange s ON s.span && a.span
"""


def _columns(wanted: Mapping[int, Ranges]) -> tuple[list[int], list[int], list[int]]:
    flat = [(p, *checked(start, end)) for p, ranges in wanted.items() for start, end in ranges]
    return [f[0] for f in flat], [f[1] for f in flat], [f[2] for f in flat]


def _by_partition(rows: Iterable[tuple[Any, ...]]) -> dict[int, Ranges]:
    found: dict[int, Ranges] = {}
    for partition, start, end in rows:
        found.setdefault(partition, []).append((start, end))
    return {p: offsets.merged(ranges) for p, ranges in found.items()}


def settled_ranges(key: ProgressKey) -> Ranges:
    """All settled ranges of one key, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lower(span), upper(span) FROM segments_settledrange WHERE span && %s ORDER BY lower(span)",
            [_whole(key.id)],
        )
        return offsets.merged((unspan(low, up)[1], unspan(low, up)[2]) for low, up in cursor.fetchall())


def settled_of(source: Source) -> dict[int, Ranges]:
    """All settled ranges of a source's partitions, each sorted; of those that have any."""
    found: dict[int, Ranges] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT k.partition, lower(r.span), upper(r.span) FROM segments_progresskey k"
            " JOIN segments_settledrange r ON r.span && int8range(k.id << %s, (k.id + 1) << %s)"
            " WHERE k.source_id = %s ORDER BY k.partition, lower(r.span)",
            [OFFSET_BITS, OFFSET_BITS, source.pk],
        )
        for partition, lower, upper in cursor.fetchall():
            found.setdefault(partition, []).append(unspan(lower, upper)[1:])
    return {partition: offsets.merged(ranges) for partition, ranges in found.items()}


def note_bounds(
    source: Source, starts: Mapping[int, int], begins: Mapping[int, int], ends: Mapping[int, int], undecided: int
) -> None:
    """Keep where the log of each partition begins and ends now, and where the reader began.

    ``undecided``: offsets behind an open transaction, of all partitions.
    """
    bounds = {str(p): [starts[p], begins[p], end] for p, end in ends.items()}
    Source.objects.filter(pk=source.pk).update(looked_at=timezone.now(), bounds=bounds, undecided=undecided)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE segments_progresskey k SET log_start_offset = seen.low, end_offset = seen.high, observed_at = now()"
            " FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS seen(partition, low, high)"
            " WHERE k.source_id = %s AND k.partition = seen.partition",
            [list(ends), [starts[p] for p in ends], list(ends.values()), source.pk],
        )


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


def leading_holes(source: Source) -> list[Hole]:
    """What is left between where the log of a partition begins, as far as it was seen, and its first settled range."""
    out: list[Hole] = []
    for key in source.keys.exclude(log_start_offset=None).order_by("partition"):
        first = SettledRange.objects.filter(span__overlap=_whole(key.id)).order_by("span").first()
        if first is None:
            continue
        _, start, _ = unspan(first.span.lower, first.span.upper)
        if key.log_start_offset is not None and key.log_start_offset < start:
            out.append(Hole(key.partition, key.log_start_offset, start, first.settled_at))
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
