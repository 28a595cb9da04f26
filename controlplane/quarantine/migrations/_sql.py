"""What Django's models can't say: triggers, and a view. With SQL that removes it again."""

from django.db.migrations import RunSQL

from controlplane.common.statement_triggers import statement_trigger

# They count the quarantined records of each cause by the hour. They add rows and change none, so that no writer waits for
# another.
_COUNT_CAUSES = """
        BEGIN
            INSERT INTO quarantine_causesum (datasource_id, cause, reason, hour, records, kept, first_at, last_at)
            SELECT datasource_id, cause, reason,
                   date_trunc('hour', created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS hour,
                   sum(n), coalesce(sum(n) FILTER (WHERE state = 'kept'), 0),
                   min(created_at) FILTER (WHERE n > 0), max(created_at) FILTER (WHERE n > 0)
            FROM ({changed}) changed WHERE cause <> ''
            GROUP BY datasource_id, cause, reason, hour
            HAVING sum(n) <> 0 OR coalesce(sum(n) FILTER (WHERE state = 'kept'), 0) <> 0;
            RETURN NULL;
        END
        """
_ADDED = "SELECT datasource_id, cause, reason, created_at, state, 1 AS n FROM added"
_TAKEN = "SELECT datasource_id, cause, reason, created_at, state, -1 AS n FROM taken"
_CHANGED_RECORDS = {"insert": _ADDED, "delete": _TAKEN, "update": f"{_ADDED} UNION ALL {_TAKEN}"}
CAUSE_TRIGGERS = [
    statement_trigger("quarantine_quarantinedrecord", "count_causes", event, _COUNT_CAUSES.format(changed=changed))
    for event, changed in _CHANGED_RECORDS.items()
]

QUARANTINE_CAUSES = RunSQL(
    """
    CREATE VIEW quarantine_quarantinecause AS
    SELECT min(id) AS id, datasource_id, cause, reason, sum(records)::int8 AS records, sum(kept)::int8 AS kept,
           min(first_at) AS first_at, max(last_at) AS last_at
    FROM quarantine_causesum GROUP BY datasource_id, cause, reason
    HAVING sum(records) > 0 AND max(last_at) IS NOT NULL
    """,
    "DROP VIEW quarantine_quarantinecause",
)
