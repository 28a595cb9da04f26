"""Replays: quarantined records are held by one task at a time, and leave the quarantine once.

A record's state moves by compare and set: kept → replaying under a task's id → stored, thrown_away or produced, or back
to kept. Only the task that holds a record can end it, and a publish does so in its own transaction: whatever is sent
twice or comes too late finds the record in another state, and changes nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

from django.db.models import F, Func, IntegerField, QuerySet, Sum, Value, Window
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.quarantine.models import QuarantinedRecord
from ingestion.specs.messages.protocol import Header
from ingestion.specs.messages.replays import MAX_RECORDS, KeptRecord, ProducedRecord

State = QuarantinedRecord.State
PAGE_RECORDS = MAX_RECORDS
PAGE_BYTES = 4 * 1024 * 1024  # of payloads, beside the first record's


def take_records(records: QuerySet[QuarantinedRecord], task_id: str) -> int:
    """Give those of the records that are kept to a replay; returns how many that were.

    ``records``: filtered by columns of their own only, so that a row that somebody else took meanwhile is looked at
    again before it is taken.
    """
    return records.filter(state=State.KEPT).update(state=State.REPLAYING, replay_id=task_id)


def release_records(task_id: str) -> int:
    """What an ended replay still holds is kept as before; returns how many records that were."""
    return QuarantinedRecord.objects.filter(state=State.REPLAYING, replay_id=task_id).update(
        state=State.KEPT, replay_id="", replays=F("replays") + 1
    )


def held_records(task_id: str, after: int) -> list[KeptRecord]:
    """Records that a replay holds with ids above ``after``: at least one if there is any, and about 4 MiB at most."""
    size = Coalesce(Func(F("payload"), function="octet_length", output_field=IntegerField()), Value(0))
    records = QuarantinedRecord.objects.filter(state=State.REPLAYING, replay_id=task_id, id__gt=after)
    running = Window(Sum(size), order_by=F("id").asc())
    sized = records.annotate(upto=running).order_by("id").values_list("id", "upto")[:PAGE_RECORDS]
    numbers = [number for n, (number, upto) in enumerate(sized) if n == 0 or upto <= PAGE_BYTES]
    return [_as_message(r) for r in QuarantinedRecord.objects.filter(pk__in=numbers).order_by("id")]


def _as_message(record: QuarantinedRecord) -> KeptRecord:
    return KeptRecord.model_construct(
        number=record.pk,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=None if record.key is None else bytes(record.key),
        payload=None if record.payload is None else bytes(record.payload),
        headers=decode_headers(record.headers),
        file_header=bytes(record.file_header),
    )


def mark_produced(task_id: str, records: Iterable[ProducedRecord]) -> int:
    """The broker has these once more; returns how many the replay held until now."""
    now = timezone.now()
    rows = [(r.number, r.partition, r.offset) for r in records]
    with cursor() as c:
        return c.execute(
            "UPDATE quarantine_quarantinedrecord q SET state = %s, ended_at = %s, replays = q.replays + 1,"
            " produced_partition = w.partition, produced_offset = w.at"
            " FROM unnest(%s::int8[], %s::int4[], %s::int8[]) AS w(id, partition, at)"
            " WHERE q.id = w.id AND q.state = 'replaying' AND q.replay_id = %s",
            (State.PRODUCED.value, now, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], task_id),
        ).rowcount


def encode_headers(headers: Iterable[Header]) -> bytes:
    """Headers as they are kept: JSON, since a name may hold what the database's text can't."""
    return json.dumps([[n, None if v is None else base64.b64encode(v).decode()] for n, v in headers]).encode()


def decode_headers(headers: bytes | memoryview) -> list[Header]:
    """What ``encode_headers`` made."""
    return [(n, None if v is None else base64.b64decode(v)) for n, v in json.loads(bytes(headers))]
