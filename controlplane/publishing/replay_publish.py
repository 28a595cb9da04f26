"""What a publish of a replay does to the records that it names: they leave the quarantine, and the books, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from controlplane.common.database import cursor
from controlplane.common.errors import InvalidInput
from controlplane.publishing.postgres_ranges import Ranges
from controlplane.quarantine.models import QuarantinedRecord
from ingestion.specs import offsets
from ingestion.specs.causes import cause_of
from ingestion.specs.messages.protocol import PublishRequest

State = QuarantinedRecord.State

_LOCK_HELD = """
    SELECT q.id, q.partition, q."offset"
    FROM unnest(%s::int4[], %s::int8[], %s::int8[]) AS w(partition, low, high)
    JOIN quarantine_quarantinedrecord q
        ON q.source_id = %s AND q.partition = w.partition AND q."offset" >= w.low AND q."offset" < w.high
    WHERE q.state = 'replaying' AND q.replay_id = %s
    ORDER BY q.id FOR UPDATE OF q
"""
_COUNT_REPLAYED = """
    UPDATE publishing_indexerfence f SET replayed = f.replayed + m.records FROM (
        SELECT f.id, n.records FROM publishing_indexerfence f JOIN (
            SELECT p.fence_id, count(*) AS records FROM quarantine_quarantinedrecord q
            JOIN publishing_publish p ON p.id = q.publish_id WHERE q.id = ANY(%s) GROUP BY p.fence_id
        ) n ON n.fence_id = f.id ORDER BY f.id FOR UPDATE OF f
    ) m WHERE m.id = f.id
"""
_END_RECORDS = """
    UPDATE quarantine_quarantinedrecord SET state = %s, ended_at = %s, replays = replays + 1 WHERE id = ANY(%s)
"""
_REQUARANTINE = """
    UPDATE quarantine_quarantinedrecord q SET state = 'kept', replay_id = '', replays = q.replays + 1,
        reason = w.reason, error = w.error, cause = w.cause, task_id = %s, publish_id = %s
    FROM unnest(%s::int8[], %s::text[], %s::text[], %s::text[]) AS w(id, reason, error, cause) WHERE q.id = w.id
"""


@dataclass(frozen=True)
class ReplayOutcome:
    """What has become of records whose rows are locked, by their numbers."""

    stored: list[int]
    thrown_away: list[int]
    still_bad: Mapping[int, tuple[str, str]]  # reason and error

    def conclude(self, task_id: str, publish_id: UUID, now: datetime) -> None:
        """Move every record to it, and out of the books of the indexer that had read it."""
        reasons, errors = [r for r, _ in self.still_bad.values()], [e for _, e in self.still_bad.values()]
        causes = [cause_of(reason, error).fingerprint for reason, error in self.still_bad.values()]
        with cursor() as c:
            c.execute(_COUNT_REPLAYED, ([*self.stored, *self.thrown_away, *self.still_bad],))
            c.execute(_END_RECORDS, (State.STORED.value, now, self.stored))
            c.execute(_END_RECORDS, (State.THROWN_AWAY.value, now, self.thrown_away))
            c.execute(_REQUARANTINE, (task_id, publish_id, list(self.still_bad), reasons, errors, causes))


@dataclass(frozen=True)
class HeldRecords:
    """The records that a publish of a replay names, their rows locked."""

    numbers: dict[tuple[int, int], int]  # (partition, offset) → id
    missing: dict[int, Ranges]  # what it named and does not hold

    @classmethod
    def locked(cls, source: int, task_id: str, settling: dict[int, Ranges]) -> HeldRecords:
        """In the caller's transaction, until it ends."""
        flat = [(p, start, end) for p, ranges in settling.items() for start, end in ranges]
        columns = [f[0] for f in flat], [f[1] for f in flat], [f[2] for f in flat]
        with cursor() as c:
            rows = c.execute(_LOCK_HELD, (*columns, source, task_id)).fetchall()
        numbers = {(partition, offset): number for number, partition, offset in rows}
        held_offsets = {p: offsets.ranges_of(sorted(o for q, o in numbers if q == p)) for p in settling}
        missing = {p: offsets.subtracted(ranges, held_offsets[p]) for p, ranges in settling.items()}
        return cls(numbers, {p: ranges for p, ranges in missing.items() if ranges})

    def conclude(self, task_id: str, request: PublishRequest, now: datetime) -> None:
        """Move every record to what it became, and out of the books of the indexer that had read it."""
        stored = sorted({n for s in request.segments for n in self._numbers_in(s.offsets)})
        thrown_away = self._numbers_in({p: o.thrown_away for p, o in request.outcomes.items()})
        again = {self.numbers.get((q.partition, q.offset), 0): q for q in request.quarantined}
        if sorted(again) != sorted(self._numbers_in({p: o.unparseable for p, o in request.outcomes.items()})):
            raise InvalidInput("What could not be read again must come with its error, each once.")
        still_bad = {number: (q.reason, q.error) for number, q in again.items()}
        ReplayOutcome(stored, thrown_away, still_bad).conclude(task_id, request.publish_id, now)

    def _numbers_in(self, ranges: dict[int, Ranges]) -> list[int]:
        return [self.numbers[(p, o)] for p, some in ranges.items() for o in offsets.expanded(some)]
