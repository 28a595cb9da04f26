"""One batch on its way: which of its records became what. Every record has exactly one outcome."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from ingestion.sources.base import ACCEPT, REJECT, Batch, Ints
from ingestion.specs import offsets
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import (
    FaultyRecord,
    Outcomes,
    PublishRequest,
    QuarantinedRecord,
    SegmentFile,
)
from ingestion.specs.messages.storable_text import storable_text
from ingestion.task.epoch import Epoch
from ingestion.task.quarantine import ERROR_LENGTH, fit_records

KEPT_BYTES = 64 * 1024  # of the payload of a record with a faulty field
OUTCOMES = 7
PENDING, STORED, FILTERED, OUTSIDE, TOMBSTONE, UNPARSEABLE, DUPLICATE = range(OUTCOMES)
THROWN_AWAY = (FILTERED, OUTSIDE, TOMBSTONE)
_NOTHING_ELSE = "(The rest of the record could not be stored.) "
Mask = npt.NDArray[np.bool_]


@dataclass
class Ledger:
    """Outcome by record of a batch, as small integers; errors of what could not be decoded by index."""

    batch: Batch
    outcome: Ints = field(init=False)
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)  # index → (reason, error)
    extra: dict[int, Outcomes] = field(init=False)  # offsets that end without a record, by partition
    faults: dict[int, str] = field(default_factory=dict)  # index → what is wrong with a field of what is stored
    extra_rows: dict[int, int] = field(default_factory=dict)  # index → how many rows it has beyond the first
    first_delivery_duplicates: int = 0  # duplicates that were delivered for the first time

    def __post_init__(self) -> None:
        self.extra = dict(self.batch.extra)
        self.outcome = np.full(len(self.batch), PENDING, dtype=np.int64)

    def part(self, batch: Batch, start: int) -> Ledger:
        """That of some of the records, from ``start`` on: their outcomes here change with those there."""
        span = range(start, start + len(batch))
        part = Ledger(batch)
        part.outcome = self.outcome[span.start : span.stop]
        part.errors = {i - start: error for i, error in self.errors.items() if i in span}
        part.faults = {i - start: fault for i, fault in self.faults.items() if i in span}
        part.extra_rows = {i - start: rows for i, rows in self.extra_rows.items() if i in span}
        part.first_delivery_duplicates = 0 if start else self.first_delivery_duplicates
        return part

    def without_payloads(self) -> Ledger:
        """A ledger that tells of its records only their places, and what is wrong with them."""
        nothing: list[None] = [None] * len(self.batch)
        told_of = replace(self.batch, keys=nothing, payloads=nothing, timestamps_ms=nothing, headers=())
        part = self.part(told_of, 0)
        part.errors = {i: (why, f"{_NOTHING_ELSE}{error}"[:ERROR_LENGTH]) for i, (why, error) in self.errors.items()}
        return part

    def mark(self, indexes: Iterable[int] | Ints, outcome: int) -> None:
        """Give these records an outcome."""
        chosen = np.fromiter(indexes, dtype=np.int64) if not isinstance(indexes, np.ndarray) else indexes
        self.outcome[chosen] = outcome

    def mark_unparseable(self, errors: dict[int, str], reason: str) -> None:
        """These could not be decoded."""
        self.mark(errors.keys(), UNPARSEABLE)
        self.errors.update({index: (reason, storable_text(error)[:ERROR_LENGTH]) for index, error in errors.items()})

    def note_rows(self, indexes: Ints) -> None:
        """``indexes``: of the records, each as often as it has rows."""
        records, counts = np.unique(indexes, return_counts=True)
        several = counts > 1
        self.extra_rows.update(zip(records[several].tolist(), (counts[several] - 1).tolist(), strict=True))

    def mark_duplicates(self, settled: dict[int, list[offsets.Range]]) -> int:
        """Records at settled offsets are duplicates from here on; returns how many of them were first deliveries.

        Offsets without a record that are settled by now are nobody's business any more.
        """
        for partition in self.extra.keys() & settled.keys():
            left, holes = self.extra[partition], settled[partition]
            self.extra[partition] = Outcomes(
                empty=offsets.subtracted(left.empty, holes), gap=offsets.subtracted(left.gap, holes)
            )
        mask = self.at(settled)
        self.outcome[mask] = DUPLICATE
        return int((self.batch.delivery_counts[mask] == 1).sum())

    def at(self, ranges: dict[int, list[offsets.Range]]) -> Mask:
        """Which records lie in the ranges."""
        mask = np.zeros(len(self.batch), dtype=bool)
        for partition, some in ranges.items():
            is_here = self.batch.partitions == partition
            for start, end in some:
                mask |= is_here & (self.batch.offsets >= start) & (self.batch.offsets < end)
        return mask

    def indexes(self, *outcomes: int) -> Ints:
        """The records with one of these outcomes."""
        return np.flatnonzero(self._with(*outcomes)).astype(np.int64)

    def _with(self, first: int, *others: int) -> Mask:
        mask: Mask = self.outcome == first
        for outcome in others:
            mask |= self.outcome == outcome
        return mask

    @property
    def acknowledgements(self) -> Ints:
        """REJECT what is in quarantine, ACCEPT all else."""
        return np.where(self.outcome == UNPARSEABLE, REJECT, ACCEPT).astype(np.int64)

    @property
    def redelivered(self) -> int:
        return int((self.batch.delivery_counts > 1).sum())

    @property
    def parse_exceptions(self) -> dict[int, str]:
        """What is wrong with records that could not be read or only in part, by index; duplicates aside."""
        unread = {i: error for i, (_, error) in self.errors.items() if self.outcome[i] == UNPARSEABLE}
        return unread | {i: fault for i, fault in self.faults.items() if self.outcome[i] == STORED}

    @property
    def processed_with_error(self) -> int:
        """How many of the records that are stored have a field that was no good."""
        return sum(self.outcome[i] == STORED for i in self.faults) if self.faults else 0

    def further_rows(self, mask: Mask | None = None) -> int:
        """How many rows the stored ones of the records have beyond the first of each. ``mask``: of these alone."""
        indexes, rows = (np.fromiter(some, np.int64) for some in (self.extra_rows.keys(), self.extra_rows.values()))
        stored = self.outcome[indexes] == STORED
        return int(rows[stored if mask is None else stored & mask[indexes]].sum())

    def processed_with_error_among(self, mask: Mask) -> int:
        """How many of these records are stored although a field was no good."""
        return sum(bool(mask[i]) and self.outcome[i] == STORED for i in self.faults)

    def counters(self, rows: int) -> Counters:
        """``rows``: how many rows the segments hold."""
        count = np.bincount(self.outcome, minlength=OUTCOMES).tolist()
        further = self.further_rows()
        return Counters(
            polled=len(self.batch),
            published=rows,
            rolled_up=count[STORED] + further - rows,
            further_rows=further,
            thrown_away=sum(count[outcome] for outcome in THROWN_AWAY),
            unparseable=count[UNPARSEABLE],
            duplicates=count[DUPLICATE],
            redelivered=self.redelivered,
            quarantined=count[UNPARSEABLE],
            filtered=count[FILTERED],
            outside_window=count[OUTSIDE],
            tombstones=count[TOMBSTONE],
            processed_with_error=self.processed_with_error,
            input_bytes=sum(map(len, filter(None, self.batch.payloads))),
        )

    def outcomes(self) -> dict[int, Outcomes]:
        """Per partition, the offsets of everything that is not stored."""
        ended = {}
        elsewhere = set(self.batch.partitions[self.outcome != STORED].tolist())
        for partition in sorted({*elsewhere, *self.extra}):
            extra = self.extra.get(partition, Outcomes())
            outcomes = Outcomes(
                thrown_away=self._ranges(partition, *THROWN_AWAY),
                unparseable=self._ranges(partition, UNPARSEABLE),
                duplicate=self._ranges(partition, DUPLICATE),
                empty=extra.empty,
                gap=extra.gap,
            )
            if outcomes != Outcomes():
                ended[partition] = outcomes
        return ended

    def _ranges(self, partition: int, *outcomes: int) -> list[offsets.Range]:
        mask = (self.batch.partitions == partition) & self._with(*outcomes)
        return offsets.ranges_of(self.batch.offsets[mask].tolist())

    def all_offsets(self, indexes: Ints) -> dict[int, list[offsets.Range]]:
        """These records' offsets by partition."""
        partitions, numbers = self.batch.partitions[indexes], self.batch.offsets[indexes]
        return {p: offsets.ranges_of(numbers[partitions == p].tolist()) for p in np.unique(partitions).tolist()}

    def quarantined(self) -> list[QuarantinedRecord]:
        """What could not be decoded, whole as long as a publish can carry it."""
        return fit_records([self._quarantined(i) for i in self.indexes(UNPARSEABLE).tolist()])

    def _quarantined(self, index: int) -> QuarantinedRecord:
        reason, error = self.errors[index]
        batch = self.batch
        return QuarantinedRecord.model_construct(
            partition=int(batch.partitions[index]),
            offset=int(batch.offsets[index]),
            timestamp_ms=batch.timestamps_ms[index],
            delivery_count=int(batch.delivery_counts[index]),
            reason=reason,
            error=error,
            key=batch.keys[index],
            payload=batch.payloads[index],
            headers=list(batch.headers[index]) if batch.headers else [],
        )

    def faulty(self, most: int) -> list[FaultyRecord]:
        """The first of the records that are stored with a faulty field."""
        return [self._faulty(i) for i in islice((i for i in self.faults if self.outcome[i] == STORED), max(0, most))]

    def _faulty(self, index: int) -> FaultyRecord:
        batch, payload = self.batch, self.batch.payloads[index]
        return FaultyRecord.model_construct(
            partition=int(batch.partitions[index]),
            offset=int(batch.offsets[index]),
            timestamp_ms=batch.timestamps_ms[index],
            delivery_count=int(batch.delivery_counts[index]),
            error=storable_text(self.faults[index])[:ERROR_LENGTH],
            payload=None if payload is None else payload[:KEPT_BYTES],
            payload_size=None if payload is None else len(payload),
        )

    def request(self, epoch: Epoch, segments: Sequence[SegmentFile], faulty: int = 0) -> PublishRequest:
        """The publish of this batch under a new publish id. ``faulty``: how many records with a fault to keep."""
        return PublishRequest(
            publish_id=uuid.uuid4(),
            epoch=epoch.number,
            topic_id=epoch.topic_id,
            segments=list(segments),
            outcomes=self.outcomes(),
            counters=self.counters(sum(s.rows for s in segments)),
            quarantined=self.quarantined(),
            faulty=self.faulty(faulty),
            early_duplicates=self.first_delivery_duplicates,
        )
