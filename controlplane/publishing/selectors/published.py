"""What tasks published: from where on, and how much of late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import connection

from controlplane.publishing.models import OFFSET_BITS
from controlplane.sources.models import Source
from ingestion.specs.counters import IN_DRUID

WINDOWS = {"1m": 60, "5m": 300, "15m": 900}  # name → seconds
Rates = dict[str, dict[str, dict[str, float]]]

_FIRST = f"""
    SELECT k.partition, first.low - (k.id << {OFFSET_BITS})
    FROM publishing_progresskey k, LATERAL (
        SELECT lower(hull) AS low FROM publishing_receipt
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


def rates(task_ids: Sequence[str]) -> Rates:
    """Druid's moving averages. By task and window: each counter per second over that window, until now.

    A task without publishes has zeros.
    """
    sums = ", ".join(f"coalesce(sum((p.counters->>'{name}')::int8), 0)" for name in IN_DRUID)
    averages: Rates = {task: {} for task in task_ids}
    with connection.cursor() as cursor:
        for window, seconds in WINDOWS.items():
            cursor.execute(
                f"SELECT f.task_id, {sums} FROM publishing_indexerfence f LEFT JOIN publishing_publish p"
                " ON p.fence_id = f.id AND p.created_at > now() - make_interval(secs => %s)"
                " WHERE f.task_id = ANY(%s) GROUP BY f.task_id",
                [seconds, list(task_ids)],
            )
            for task, *values in cursor.fetchall():
                averages[task][window] = {n: float(v) / seconds for n, v in zip(IN_DRUID, values, strict=True)}
    none = dict.fromkeys(IN_DRUID, 0.0)
    return {task: {w: by.get(w, none) for w in WINDOWS} for task, by in averages.items()}


_ROWS = """
    SELECT f.datasource_id, sum((p.counters->>'published')::int8)::float8 / %s
    FROM publishing_indexerfence f JOIN publishing_publish p ON p.fence_id = f.id
    WHERE f.datasource_id = ANY(%s) AND f.last_publish_at > now() - make_interval(secs => %s)
      AND p.created_at > now() - make_interval(secs => %s) GROUP BY 1
"""


def rows_per_s(datasources: Iterable[int], seconds: int = WINDOWS["1m"]) -> dict[int, float]:
    """By datasource, the rows that were published a second in the last minute; without those that had none."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [seconds, list(datasources), seconds, seconds])
        return {datasource: rate for datasource, rate in cursor.fetchall() if rate}
