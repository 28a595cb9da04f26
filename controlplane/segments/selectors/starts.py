"""Where a task began on each partition, by its receipts."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from controlplane.segments.models import OFFSET_BITS, Source

_FIRST = f"""
    SELECT k.partition, first.low - (k.id << {OFFSET_BITS})
    FROM segments_progresskey k, LATERAL (
        SELECT lower(hull) AS low FROM segments_receipt
        WHERE key_id = k.id AND created_at >= %s AND task_id = %s AND NOT replay ORDER BY created_at LIMIT 1
    ) first WHERE k.source_id = %s
"""


def first_published(source: Source, task_id: str, since: datetime) -> dict[int, int]:
    """The first offset of the task's first publish, by partition; of those that it has published something of.

    ``since``: when the task was made: nothing of it is older.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FIRST, [since, task_id, source.pk])
        return dict(cursor.fetchall())
