"""Keeps the sums of causes few: what triggers added since becomes one row an hour, and what is old one row in all."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor, try_advisory_lock
from controlplane.quarantine.models import CauseSum

HOURLY_FOR = timedelta(hours=48)  # longer than any trend that is shown
_LOCK = 0x6361757365  # "cause"
_FOLD = """
    WITH placed AS (
        SELECT id, datasource_id, cause, reason, CASE WHEN hour < %(cutoff)s THEN %(long_ago)s ELSE hour END AS hour,
               hour < %(cutoff)s AND hour > %(long_ago)s AS moves, records, kept, first_at, last_at
        FROM quarantine_causesum
    ), crowded AS (
        SELECT datasource_id, cause, reason, hour FROM placed GROUP BY datasource_id, cause, reason, hour
        HAVING count(*) > 1 OR bool_or(moves) OR sum(records) = 0
    ), gone AS (
        DELETE FROM quarantine_causesum s USING placed p JOIN crowded c USING (datasource_id, cause, reason, hour)
        WHERE s.id = p.id
        RETURNING p.datasource_id, p.cause, p.reason, p.hour, p.records, p.kept, p.first_at, p.last_at
    )
    INSERT INTO quarantine_causesum (datasource_id, cause, reason, hour, records, kept, first_at, last_at)
    SELECT datasource_id, cause, reason, hour, sum(records), sum(kept), min(first_at), max(last_at) FROM gone
    WHERE datasource_id IN (SELECT id FROM datasources_datasource)
    GROUP BY datasource_id, cause, reason, hour HAVING sum(records) <> 0 OR sum(kept) <> 0
"""


def fold_sums(now: datetime | None = None) -> int:
    """Join what adds up; returns how many rows are left. One runs at a time; others do nothing and say -1."""
    with try_advisory_lock(_LOCK) as locked:
        if not locked:
            return -1
        with transaction.atomic(), cursor() as c:
            c.execute(_FOLD, {"cutoff": (now or timezone.now()) - HOURLY_FOR, "long_ago": CauseSum.LONG_AGO})
        return CauseSum.objects.count()
