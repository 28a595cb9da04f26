"""A task's faulty records by cause: one row for each, however many records have it. See ``ingestion.specs.causes``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.quarantine.selectors.lists import list_faulty, list_quarantined_by
from controlplane.teams.models import User
from ingestion.specs.causes import cause_of

MAX_RECORDS = 20_000  # of each kind, the newest
MAX_GROUPS = 50


@dataclass(frozen=True)
class ErrorGroup:
    """Records of a task with one cause."""

    reason: str
    title: str  # the message without what is each record's own
    records: int
    first_at: datetime
    last_at: datetime
    example: QuarantinedRecord | FaultyRecord  # the newest


def error_groups(user: User, task_id: str) -> list[ErrorGroup]:
    """Of what could not be read and of what was stored with a faulty field, the most frequent first."""
    groups = [
        *_groups("quarantine_quarantinedrecord", task_id, list_quarantined_by(user, task_id)),
        *_groups("quarantine_faultyrecord", task_id, list_faulty(user, task_id)),
    ]
    return sorted(groups, key=lambda group: (-group.records, group.title))[:MAX_GROUPS]


def _groups(table: str, task_id: str, records: Any) -> list[ErrorGroup]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT count(*), min(created_at), max(created_at), max(id) FROM (
                SELECT id, created_at, cause FROM {table} WHERE task_id = %s ORDER BY id DESC LIMIT {MAX_RECORDS}
            ) AS newest GROUP BY cause ORDER BY count(*) DESC LIMIT {MAX_GROUPS}
            """,
            [task_id],
        )
        rows = cursor.fetchall()
    examples = {record.pk: record for record in records.filter(pk__in=[row[-1] for row in rows])}
    return [
        ErrorGroup(example.reason, _title(example), count, first, last, example)
        for count, first, last, newest in rows
        if (example := examples.get(newest)) is not None
    ]


def _title(example: QuarantinedRecord | FaultyRecord) -> str:
    return example.error if example.concealed_for else cause_of(example.reason, example.error).title
