"""What lies below and beside the segments in use: layers of the timeline, drawn where somebody asks for them.

What they cost does not grow with the datasource: of each layer so many segments are looked at, and no more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments.selectors.sums import window_sums

LAYERS = {
    "unused": "Unused segments whose files still exist: removed, or replaced by a merge.",
    "merged": "Intervals of which segments were merged, and what was replaced.",
    "late": "Segments in use that a task wrote from records after their interval had ended.",
}
MAX_SCANNED = 50_000
MAX_MARKS = 5_000


@dataclass(frozen=True)
class Mark:
    """What one interval has in a layer."""

    start: datetime
    end: datetime
    segments: int
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class Layer:
    """A layer of a window, by interval; without marks where there are too many to be looked at."""

    name: str
    marks: tuple[Mark, ...] = ()
    too_many: bool = False


_UNUSED = """
    SELECT interval_start, interval_end, 1 AS segments, rows, size_bytes FROM segments_segment
    WHERE datasource_id = %(datasource)s AND NOT used
"""
_MERGED = """
    SELECT interval_start, interval_end, cardinality(taken) AS segments, rows_before AS rows, bytes_before AS size_bytes
    FROM segments_replacement WHERE datasource_id = %(datasource)s
"""
# What a merge has made tells nothing of when its rows came.
_LATE = """
    SELECT interval_start, interval_end, 1 AS segments, rows, size_bytes FROM segments_segment s
    WHERE datasource_id = %(datasource)s AND used AND created_at > interval_end AND NOT EXISTS (
        SELECT FROM segments_replacement r WHERE r.task_id = s.task_id AND r.datasource_id = s.datasource_id
    )
"""
_STATEMENTS = {"unused": _UNUSED, "merged": _MERGED, "late": _LATE}
_BY_INTERVAL = """
    WITH looked AS MATERIALIZED ({} {} LIMIT %(most)s)
    SELECT interval_start, interval_end, sum(segments)::int8, sum(rows)::int8, sum(size_bytes)::int8,
           (SELECT count(*) FROM looked)
    FROM looked GROUP BY 1, 2 ORDER BY 1, 2 LIMIT %(most_marks)s
"""


def layers(
    datasource: Datasource, names: Collection[str], *, start: datetime | None = None, end: datetime | None = None
) -> list[Layer]:
    """Those of the intervals that touch ``[start, end)``. Raises ``InvalidInput`` for a name that there is not."""
    unknown = sorted(set(names) - LAYERS.keys())
    if unknown:
        raise InvalidInput(f"layers: {unknown[0][:50]!r} is none of {', '.join(LAYERS)}.")
    return [_layer(datasource, name, start, end) for name in LAYERS if name in names]


def _layer(datasource: Datasource, name: str, start: datetime | None, end: datetime | None) -> Layer:
    # Nothing says which of them are late but they themselves.
    if name == "late" and window_sums(datasource, start, end).segments > MAX_SCANNED:
        return Layer(name, too_many=True)
    bounds = (" AND interval_end > %(start)s" if start else "") + (" AND interval_start < %(end)s" if end else "")
    values = {
        "datasource": datasource.pk,
        "start": start,
        "end": end,
        "most": MAX_SCANNED + 1,
        "most_marks": MAX_MARKS + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_BY_INTERVAL.format(_STATEMENTS[name], bounds), values)
        rows = cursor.fetchall()
    if len(rows) > MAX_MARKS or (rows and rows[0][5] > MAX_SCANNED):
        return Layer(name, too_many=True)
    return Layer(name, tuple(Mark(*row[:5]) for row in rows))
