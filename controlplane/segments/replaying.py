"""Replays: quarantined records are held by one task at a time, and leave the quarantine once.

A record's state moves by compare and set: kept → replaying under a task's id → stored, thrown_away or produced, or back
to kept. Only the task that holds a record can end it, and a publish does so in its own transaction: whatever is sent
twice or comes too late finds the record in another state, and changes nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F, Func, IntegerField, QuerySet, Sum, Value, Window
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.errors import InvalidInput
from controlplane.segments.models import QuarantinedRecord
from controlplane.segments.spans import Ranges
from ingestion.specs import offsets
from ingestion.specs.causes import cause_of
from ingestion.specs.protocol import Header, PublishRequest
from ingestion.specs.replays import MOST_RECORDS, KeptRecord, ProducedRecord

State = QuarantinedRecord.State
PAGE_RECORDS = MOST_RECORDS
PAGE_BYTES = 4 * 1024 * 1024  # of payloads, beside the first record's

_HELD = """
    SELECT q.id, q.partition, q."offset"
    FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS w(partition, low, high)
    JOIN segments_quarantinedrecord q
        ON q.source_id = %s AND q.partition = w.partition AND q."offset" >= w.low AND q."offset" < w.high
    WHERE q.state = 'replaying' AND q.replay_id = %s
    ORDER BY q.id FOR UPDATE OF q
"""
_MOVE_BOOKS = """
    UPDATE segments_indexerfence f SET replayed = f.replayed + m.records FROM (
        SELECT f.id, n.records FROM segments_indexerfence f JOIN (
            SELECT p.fence_id, count(*) AS records FROM segments_quarantinedrecord q
            JOIN segments_publish p ON p.id = q.publish_id WHERE q.id = ANY(%s) GROUP BY p.fence_id
        ) n ON n.fence_id = f.id ORDER BY f.id FOR UPDATE OF f
    ) m WHERE m.id = f.id
"""
_END = """
    UPDATE segments_quarantinedrecord SET state = %s, ended_at = %s, replays = replays + 1 WHERE id = ANY(%s)
"""
_KEEP_AGAIN = """
    UPDATE segments_quarantinedrecord q SET state = 'kept', replay_id = '', replays = q.replays + 1,
        reason = w.reason, error = w.error, cause = w.cause, task_id = %s, publish_id = %s
    FROM unnest(%s::int8[], %s::text[], %s::text[], %s::text[]) AS w(id, reason, error, cause) WHERE q.id = w.id
"""


def hold(records: QuerySet[QuarantinedRecord], task_id: str) -> int:
    """Give those of the records that are kept to a replay; returns how many that were.

    ``records``: filtered by columns of their own only, so that a row that somebody else took meanwhile is looked at
    again before it is taken.
    """
    return records.filter(state=State.KEPT).update(state=State.REPLAYING, replay_id=task_id)


def give_back(task_id: str) -> int:
    """What an ended replay still holds is kept as before; returns how many records that were."""
    return QuarantinedRecord.objects.filter(state=State.REPLAYING, replay_id=task_id).update(
        state=State.KEPT, replay_id="", replays=F("replays") + 1
    )


def held_records(task_id: str, after: int) -> list[KeptRecord]:
    """Records that a replay holds with ids above ``after``: at least one if there is any, and about 4 MiB at most."""
    size = Coalesce(Func(F("payload"), function="octet_length", output_field=IntegerField()), Value(0))
    mine = QuarantinedRecord.objects.filter(state=State.REPLAYING, replay_id=task_id, id__gt=after)
    running = Window(Sum(size), order_by=F("id").asc())
    sized = mine.annotate(upto=running).order_by("id").values_list("id", "upto")[:PAGE_RECORDS]
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
        headers=unpacked(record.headers),
        file_header=bytes(record.file_header),
    )


def mark_produced(task_id: str, records: Iterable[ProducedRecord]) -> int:
    """The broker has these once more; returns how many the replay held until now."""
    now = timezone.now()
    rows = [(r.number, r.partition, r.offset) for r in records]
    with cursor() as c:
        return c.execute(
            "UPDATE segments_quarantinedrecord q SET state = %s, ended_at = %s, replays = q.replays + 1,"
            " produced_partition = w.partition, produced_offset = w.at"
            " FROM unnest(%s::int8[], %s::int4[], %s::int8[]) AS w(id, partition, at)"
            " WHERE q.id = w.id AND q.state = 'replaying' AND q.replay_id = %s",
            (State.PRODUCED.value, now, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], task_id),
        ).rowcount


@dataclass(frozen=True)
class Became:
    """What has become of records whose rows are locked, by their numbers."""

    stored: list[int]
    thrown_away: list[int]
    still_bad: Mapping[int, tuple[str, str]]  # reason and error

    def conclude(self, task_id: str, publish_id: UUID, now: datetime) -> None:
        """Move every record to it, and out of the books of the indexer that had read it."""
        reasons, errors = [r for r, _ in self.still_bad.values()], [e for _, e in self.still_bad.values()]
        causes = [cause_of(reason, error).fingerprint for reason, error in self.still_bad.values()]
        with cursor() as c:
            c.execute(_MOVE_BOOKS, ([*self.stored, *self.thrown_away, *self.still_bad],))
            c.execute(_END, (State.STORED.value, now, self.stored))
            c.execute(_END, (State.THROWN_AWAY.value, now, self.thrown_away))
            c.execute(_KEEP_AGAIN, (task_id, publish_id, list(self.still_bad), reasons, errors, causes))


@dataclass(frozen=True)
class Held:
    """The records that a publish of a replay names, their rows locked."""

    numbers: dict[tuple[int, int], int]  # (partition, offset) → id
    missing: dict[int, Ranges]  # what it named and does not hold

    @classmethod
    def locked(cls, source: int, task_id: str, settling: dict[int, Ranges]) -> Held:
        """In the caller's transaction, until it ends."""
        flat = [(p, start, end) for p, ranges in settling.items() for start, end in ranges]
        columns = [f[0] for f in flat], [f[1] for f in flat], [f[2] for f in flat]
        with cursor() as c:
            rows = c.execute(_HELD, (*columns, source, task_id)).fetchall()
        numbers = {(partition, offset): number for number, partition, offset in rows}
        held = {p: offsets.ranges_of(sorted(o for q, o in numbers if q == p)) for p in settling}
        missing = {p: offsets.subtracted(ranges, held[p]) for p, ranges in settling.items()}
        return cls(numbers, {p: ranges for p, ranges in missing.items() if ranges})

    def conclude(self, task_id: str, request: PublishRequest, now: datetime) -> None:
        """Move every record to what it became, and out of the books of the indexer that had read it."""
        stored = sorted({n for s in request.segments for n in self._among(s.offsets)})
        thrown_away = self._among({p: o.thrown_away for p, o in request.outcomes.items()})
        again = {self.numbers.get((q.partition, q.offset), 0): q for q in request.quarantined}
        if sorted(again) != sorted(self._among({p: o.unparseable for p, o in request.outcomes.items()})):
            raise InvalidInput("What could not be read again must come with its error, each once.")
        still_bad = {number: (q.reason, q.error) for number, q in again.items()}
        Became(stored, thrown_away, still_bad).conclude(task_id, request.publish_id, now)

    def _among(self, ranges: dict[int, Ranges]) -> list[int]:
        return [self.numbers[(p, o)] for p, some in ranges.items() for o in offsets.expanded(some)]


def packed(headers: Iterable[Header]) -> bytes:
    """Headers as they are kept: JSON, since a name may hold what the database's text can't."""
    return json.dumps([[n, None if v is None else base64.b64encode(v).decode()] for n, v in headers]).encode()


def unpacked(headers: bytes | memoryview) -> list[Header]:
    """What ``packed`` made."""
    return [(n, None if v is None else base64.b64decode(v)) for n, v in json.loads(bytes(headers))]
