"""What was read of each partition since the last publish, and what became of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ingestion.specs import offsets
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import (
    Advance,
    FaultyRecord,
    Outcomes,
    PublishRequest,
    QuarantinedRecord,
    SegmentFile,
)
from ingestion.task.epoch import Epoch
from ingestion.task.ledger import FILTERED, OUTSIDE, THROWN_AWAY, TOMBSTONE, UNPARSEABLE, Ledger, Mask

RECORD_BYTES = 200  # of a quarantined record, beside what it holds


@dataclass
class _Part:
    """What has gathered of one partition."""

    progress: Advance
    records: int = 0  # how many were polled
    filtered: int = 0
    outside_window: int = 0
    tombstones: int = 0
    processed_with_error: int = 0
    further_rows: int = 0
    input_bytes: int = 0
    thrown_away: list[offsets.Range] = field(default_factory=list)
    unparseable: list[offsets.Range] = field(default_factory=list)
    without_record: list[Outcomes] = field(default_factory=list)
    quarantined: list[QuarantinedRecord] = field(default_factory=list)
    faulty: list[FaultyRecord] = field(default_factory=list)

    def outcomes(self) -> Outcomes:
        return Outcomes(
            thrown_away=offsets.merged(self.thrown_away),
            unparseable=offsets.merged(self.unparseable),
            empty=offsets.merged(r for o in self.without_record for r in o.empty),
            gap=offsets.merged(r for o in self.without_record for r in o.gap),
            skipped=offsets.merged(r for o in self.without_record for r in o.skipped),
        )

    def records_below(self, offset: int) -> int:
        """How many of the records have a lower one. What is no record is in ``without_record``."""
        below = [(self.progress.start, max(self.progress.start, min(offset, self.progress.end)))]
        nothing = [r for o in self.without_record for r in (*o.empty, *o.gap, *o.skipped)]
        return offsets.count(offsets.subtracted(below, offsets.merged(nothing)))


@dataclass
class Gathered:
    """By partition, so that one which goes to another member can be left out."""

    parts: dict[int, _Part] = field(default_factory=dict)
    began_at: float = 0.0  # time.monotonic
    fed_at: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def records(self) -> int:
        return sum(p.records for p in self.parts.values())

    @property
    def kept_bytes(self) -> int:
        """How much of a message the records take that are kept: quarantined, or for the report. About."""
        parts = self.parts.values()
        faulty = sum(len(f.payload or b"") for p in parts for f in p.faulty)
        quarantined = [q for p in parts for q in p.quarantined]
        return faulty + sum(
            len(q.payload or b"") + len(q.key or b"") + len(q.error) + RECORD_BYTES for q in quarantined
        )

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.began_at if self.parts else 0.0

    @property
    def quiet_s(self) -> float:
        """How long ago the last of it was read."""
        return time.monotonic() - self.fed_at

    def add(self, ledger: Ledger, faulty: int) -> None:
        """Take a decoded batch's outcomes. ``faulty``: how many records with a faulty field to keep in all."""
        batch = ledger.batch
        self.fed_at = time.monotonic()
        if not self.parts:
            self.began_at = self.fed_at
        for partition, advance in batch.progress.items():
            part = self.parts.get(partition)
            if part is None:
                part = self.parts[partition] = _Part(advance)
            else:
                part.progress = part.progress.model_copy(update={"end": advance.end})
            if partition in batch.extra:
                part.without_record.append(batch.extra[partition])
        is_single = len(batch.progress) == 1
        for partition in batch.progress if len(batch) else ():
            mask = np.ones(len(batch), dtype=bool) if is_single else batch.partitions == partition
            self._count(self.parts[partition], ledger, mask)
        for record in ledger.quarantined():
            self.parts[record.partition].quarantined.append(record)
        for fault in ledger.faulty(faulty - sum(len(p.faulty) for p in self.parts.values())) if ledger.faults else ():
            self.parts[fault.partition].faulty.append(fault)

    def _count(self, part: _Part, ledger: Ledger, mask: Mask) -> None:
        outcome = ledger.outcome[mask]
        counts = np.bincount(outcome, minlength=UNPARSEABLE + 1)
        part.records += len(outcome)
        part.filtered += int(counts[FILTERED])
        part.outside_window += int(counts[OUTSIDE])
        part.tombstones += int(counts[TOMBSTONE])
        payloads = ledger.batch.payloads
        chosen = payloads if mask.all() else [payloads[i] for i in np.flatnonzero(mask).tolist()]
        part.input_bytes += sum(map(len, filter(None, chosen)))
        if any(counts[outcome] for outcome in THROWN_AWAY):
            part.thrown_away += _ranges(ledger, mask, *THROWN_AWAY)
        if counts[UNPARSEABLE]:
            part.unparseable += _ranges(ledger, mask, UNPARSEABLE)
        if ledger.faults:
            part.processed_with_error += ledger.processed_with_error_among(mask)
        if ledger.extra_rows:
            part.further_rows += ledger.further_rows(mask)

    def drop(self, partitions: Iterable[int], stored: Mapping[int, int | None]) -> tuple[int, int]:
        """Forget what is of these. Returns how many records others have published, and how many are yet to be.

        ``stored``: partition → the offset up to which others have; none of those that it does not name, or names None.
        """
        dropped = {p: self.parts.pop(p) for p in partitions if p in self.parts}
        redundant = sum(part.records_below(stored.get(p) or 0) for p, part in dropped.items())
        return redundant, sum(part.records for part in dropped.values()) - redundant

    def request(self, epoch: Epoch, segments: list[SegmentFile]) -> PublishRequest:
        """The publish of all of it under a new publish id."""
        outcomes = {p: part.outcomes() for p, part in sorted(self.parts.items())}
        return PublishRequest(
            publish_id=uuid.uuid4(),
            epoch=epoch.number,
            topic_id=epoch.topic_id,
            segments=segments,
            outcomes={p: o for p, o in outcomes.items() if o != Outcomes()},
            counters=self._counters(sum(s.rows for s in segments)),
            quarantined=[q for part in self.parts.values() for q in part.quarantined],
            faulty=[f for part in self.parts.values() for f in part.faulty],
            progress={p: part.progress for p, part in self.parts.items()},
        )

    def _counters(self, rows: int) -> Counters:
        parts = list(self.parts.values())
        unparseable = sum(offsets.count(p.unparseable) for p in parts)
        polled = sum(p.records for p in parts)
        thrown_away = sum(offsets.count(p.thrown_away) for p in parts)
        further = sum(p.further_rows for p in parts)
        return Counters(
            polled=polled,
            published=rows,
            rolled_up=polled - unparseable - thrown_away + further - rows,
            further_rows=further,
            thrown_away=thrown_away,
            unparseable=unparseable,
            quarantined=unparseable,
            filtered=sum(p.filtered for p in parts),
            outside_window=sum(p.outside_window for p in parts),
            tombstones=sum(p.tombstones for p in parts),
            processed_with_error=sum(p.processed_with_error for p in parts),
            input_bytes=sum(p.input_bytes for p in parts),
        )


def _ranges(ledger: Ledger, mask: Mask, *outcomes: int) -> list[offsets.Range]:
    chosen = mask & np.isin(ledger.outcome, outcomes)
    return offsets.ranges_of(ledger.batch.offsets[chosen].tolist())
