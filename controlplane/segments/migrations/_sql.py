"""What Django's models can't say: triggers, and a view. With SQL that removes it again."""

from django.db.migrations import RunSQL

from controlplane.common.statement_triggers import statement_trigger

# They name the days whose intervals change. They add rows and change none, so that no publish waits for another.
_NAME_DAYS = """
        BEGIN
            INSERT INTO segments_intervalchange (datasource_id, day)
            SELECT DISTINCT datasource_id, date_bin('24 hours', start, 'epoch'::timestamptz) FROM {changed} c;
            RETURN NULL;
        END
        """
_CHANGED_INTERVALS = {
    "insert": "added",
    "delete": "taken",
    "update": "(SELECT datasource_id, start FROM added UNION ALL SELECT datasource_id, start FROM taken)",
}
DAY_TRIGGERS = [
    statement_trigger("segments_interval", "name_days", event, _NAME_DAYS.format(changed=changed))
    for event, changed in _CHANGED_INTERVALS.items()
]

# What is summed up where that is true, the rest from the intervals. Lateral: day by day through the index. A join
# might hash all intervals.
_SUMS = """
    intervals, segments, rows, size_bytes, start, "end", min_time, max_time, lowest_version, highest_version, covered
"""
DAY_SUMS = RunSQL(
    f"""
    CREATE VIEW segments_daysum AS
    SELECT id, datasource_id, day, {_SUMS} FROM segments_intervalday d
    WHERE NOT EXISTS (
        SELECT FROM segments_intervalchange c WHERE c.datasource_id = d.datasource_id AND c.day = d.day
    )
    UNION ALL
    SELECT s.id, c.datasource_id, c.day, {_SUMS}
    FROM (SELECT DISTINCT datasource_id, day FROM segments_intervalchange) c, LATERAL (
        SELECT min(i.id) AS id, count(*) AS intervals, sum(i.segments)::int8 AS segments, sum(i.rows)::int8 AS rows,
               sum(i.size_bytes)::int8 AS size_bytes, min(i.start) AS start, max(i."end") AS "end",
               min(i.min_time) AS min_time, max(i.max_time) AS max_time, min(i.version) AS lowest_version,
               max(i.version) AS highest_version, range_agg(tstzrange(i.start, i."end")) AS covered
        FROM segments_interval i
        WHERE i.datasource_id = c.datasource_id AND i.start >= c.day AND i.start < c.day + interval '24 hours'
          AND i.segments > 0
        HAVING count(*) > 0
    ) s
    """,
    "DROP VIEW segments_daysum",
)

