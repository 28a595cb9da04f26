"""Sums up again the days whose intervals have changed, so that those who read sums need not look at intervals."""

from __future__ import annotations

from django.db import transaction

from controlplane.common.database import cursor

# Changes of publishes that have not committed are not seen, and stay.
_TAKE = """
    WITH taken AS (DELETE FROM segments_intervalchange RETURNING datasource_id, day)
    SELECT DISTINCT datasource_id, day FROM taken ORDER BY 1, 2
"""
_EMPTY = """
    DELETE FROM segments_intervalday d
    USING unnest(%(datasources)s::int8[], %(days)s::timestamptz[]) AS c(datasource, day)
    WHERE d.datasource_id = c.datasource AND d.day = c.day
"""
# Lateral: day by day through the index. A join might hash all intervals.
_FILL = """
    INSERT INTO segments_intervalday (
        datasource_id, day, intervals, segments, rows, size_bytes, start, "end", min_time, max_time, lowest_version,
        highest_version, covered
    )
    SELECT c.datasource, c.day, s.*
    FROM unnest(%(datasources)s::int8[], %(days)s::timestamptz[]) AS c(datasource, day), LATERAL (
        SELECT count(*), sum(i.segments), sum(i.rows), sum(i.size_bytes), min(i.start), max(i."end"),
               min(i.min_time), max(i.max_time), min(i.version), max(i.version), range_agg(tstzrange(i.start, i."end"))
        FROM segments_interval i
        WHERE i.datasource_id = c.datasource AND i.start >= c.day AND i.start < c.day + interval '24 hours'
          AND i.segments > 0
        HAVING count(*) > 0
    ) s
"""


@transaction.atomic
def sum_up() -> int:
    """Bring the sums of all days that have changed up to date; returns how many those were.

    Two at a time do no harm: the second waits for what the first has taken, and finds nothing.
    """
    with cursor() as c:
        changed = c.execute(_TAKE).fetchall()
        if changed:
            parameters = {"datasources": [d for d, _ in changed], "days": [day for _, day in changed]}
            # A statement of its own for each: it sees what was committed until the changes were taken, and more.
            c.execute(_EMPTY, parameters)
            c.execute(_FILL, parameters)
    return len(changed)
