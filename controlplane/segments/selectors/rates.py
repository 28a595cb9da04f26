"""Moving averages of what tasks publish, as Druid's row stats have them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from ingestion.specs.counters import IN_DRUID

WINDOWS = {"1m": 60, "5m": 300, "15m": 900}  # name → seconds
Rates = dict[str, dict[str, dict[str, float]]]


def rates(task_ids: Sequence[str]) -> Rates:
    """By task and window: each counter per second over that window, until now. A task without publishes has zeros."""
    sums = ", ".join(f"coalesce(sum((p.counters->>'{name}')::int8), 0)" for name in IN_DRUID)
    found: Rates = {task: {} for task in task_ids}
    with connection.cursor() as cursor:
        for window, seconds in WINDOWS.items():
            cursor.execute(
                f"SELECT w.task_id, {sums} FROM segments_writer w LEFT JOIN segments_publish p"
                " ON p.writer_id = w.id AND p.created_at > now() - make_interval(secs => %s)"
                " WHERE w.task_id = ANY(%s) GROUP BY w.task_id",
                [seconds, list(task_ids)],
            )
            for task, *values in cursor.fetchall():
                found[task][window] = {n: float(v) / seconds for n, v in zip(IN_DRUID, values, strict=True)}
    none = dict.fromkeys(IN_DRUID, 0.0)
    return {task: {w: by.get(w, none) for w in WINDOWS} for task, by in found.items()}
