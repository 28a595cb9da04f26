"""What came into many datasources within windows that end now, in one statement each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection

from controlplane.datasources.masked_querysets import hidden_note
from controlplane.datasources.masking import hidden_records
from controlplane.sources.models import SourceEvent


@dataclass(frozen=True)
class ParseErrors:
    """Of the records that ended in publishes of a window."""

    records: int
    errors: int  # that could not be read, or only in part


@dataclass(frozen=True)
class Quarantined:
    """The newest records in quarantine, as far as they are of a window."""

    records: int  # no more than were asked for
    error: str  # of the newest


_PARSE_ERRORS = """
    SELECT w.datasource, w.seconds, coalesce(sum((p.counters->>'polled')::int8), 0)::int8,
        sum(coalesce((p.counters->>'unparseable')::int8, 0)
            + coalesce((p.counters->>'processed_with_error')::int8, 0))::int8
    FROM unnest(%s::int8[], %s::int8[]) AS w(datasource, seconds)
    JOIN publishing_indexerfence f ON f.datasource_id = w.datasource
        AND f.last_publish_at > now() - make_interval(secs => w.seconds)
    JOIN publishing_publish p ON p.fence_id = f.id AND p.created_at > now() - make_interval(secs => w.seconds)
    GROUP BY 1, 2
"""


def count_parse_errors(keys: Collection[tuple[int, int]]) -> dict[tuple[int, int], ParseErrors]:
    """By datasource and seconds; without those into which nothing was published."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_PARSE_ERRORS, [[d for d, _ in keys], [s for _, s in keys]])
        return {(d, seconds): ParseErrors(records, errors) for d, seconds, records, errors in cursor.fetchall()}


# By the records' order in an index: so many are looked at, however many there are.
_QUARANTINED = """
    SELECT f.*, (SELECT error FROM quarantine_quarantinedrecord q WHERE q.id = f.newest) FROM (
        SELECT w.datasource, w.cause, w.seconds, w.most, count(*), max(r.id) AS newest
        FROM unnest(%s::int8[], %s::text[], %s::int8[], %s::int8[]) AS w(datasource, cause, seconds, most), LATERAL (
            SELECT id, created_at FROM quarantine_quarantinedrecord q
            WHERE q.datasource_id = w.datasource {of_cause} ORDER BY id DESC LIMIT w.most
        ) AS r
        WHERE r.created_at > now() - make_interval(secs => w.seconds) GROUP BY 1, 2, 3, 4
    ) AS f
"""
QuarantinedKey = tuple[int, str, int, int]  # datasource, cause (empty: any), seconds, most


def count_quarantined(keys: Collection[QuarantinedKey]) -> dict[QuarantinedKey, Quarantined]:
    """By what was asked for; without those into which nothing was quarantined."""
    counts: dict[QuarantinedKey, Quarantined] = {}
    hidden = hidden_records(None)  # what is told of them leaves the site
    for by_cause in (False, True):
        chosen = [a for a in keys if bool(a[1]) == by_cause]
        if not chosen:
            continue
        statement = _QUARANTINED.format(of_cause="AND q.cause = w.cause" if by_cause else "")
        with connection.cursor() as cursor:
            cursor.execute(statement, [list(column) for column in zip(*chosen, strict=True)])
            rows = cursor.fetchall()
            counts |= {
                (d, c, s, m): Quarantined(n, hidden_note(hidden[d]) if d in hidden else error)
                for d, c, s, m, n, _, error in rows
            }
    return counts


def newest_alarms(datasources: Collection[int]) -> dict[int, SourceEvent]:
    """By datasource, of those that ever had one."""
    alarms = SourceEvent.objects.shown_to(None).filter(datasource__in=datasources, alarm=True)
    return {e.datasource_id: e for e in alarms.order_by("datasource_id", "-id").distinct("datasource_id")}
