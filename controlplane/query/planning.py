"""Which files a statement needs, as of one moment: through the intervals, so that a day of many costs milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection

from controlplane.common.errors import InvalidInput
from controlplane.query.tables import UserTable
from controlplane.query.times import time_of
from ingestion.specs.messages.sql import MAX_FILES, SqlTableUse

# One statement: what a publish or a replace changes meanwhile is in it whole or not at all, for all tables alike.
_FILES = """
    SELECT w.number, s.path, s.size_bytes, s.rows
    FROM unnest(%s::int[], %s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS w(number, datasource, start, stop)
    JOIN segments_interval i ON i.datasource_id = w.datasource AND i.segments > 0
      AND tstzrange(i.start, i."end") && tstzrange(w.start, w.stop)
    JOIN segments_segment s ON s.datasource_id = i.datasource_id AND s.interval_start = i.start
      AND s.interval_end = i."end" AND s.used
    WHERE (w.start IS NULL OR s.max_time >= w.start) AND (w.stop IS NULL OR s.min_time < w.stop)
    ORDER BY w.number, s.min_time, s.path LIMIT %s
"""


@dataclass
class TableFiles:
    """What a table is read from."""

    files: list[tuple[str, int]] = field(default_factory=list)  # path, bytes
    rows: int = 0
    csv: str = ""  # of a table of ``sys``: the file that was written for this query
    csv_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size in self.files) + self.csv_bytes


def plan_files(tables: Sequence[UserTable], uses: Sequence[SqlTableUse]) -> list[TableFiles]:
    """In the order of the tables. Raises ``InvalidInput`` if there are too many."""
    planned = [TableFiles() for _ in uses]
    wanted = [
        (number, table.datasource.pk, *window)
        for number, (table, use) in enumerate(zip(tables, uses, strict=True))
        if table.datasource is not None and (window := _window(use)) is not None
    ]
    with connection.cursor() as cursor:
        cursor.execute(_FILES, [*([w[place] for w in wanted] for place in range(4)), MAX_FILES + 1])
        found = cursor.fetchall()
    if len(found) > MAX_FILES:
        raise InvalidInput(
            f"The query needs more than {MAX_FILES:,} segments. Compare __time with a shorter time range."
        )
    for number, path, size_bytes, rows in found:
        planned[number].files.append((path, size_bytes))
        planned[number].rows += rows
    return planned


def _window(use: SqlTableUse) -> tuple[datetime | None, datetime | None] | None:
    """The times that the table needs; None if it needs none."""
    start, end = time_of(use.start_us), time_of(use.end_us)
    return None if start is not None and end is not None and start >= end else (start, end)
