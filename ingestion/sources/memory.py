"""Records from memory, with a share group's rules: what is not accepted or rejected is delivered again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ingestion.sources.base import RELEASE, Batch, Ints, LeasedSource
from ingestion.sources.leases import LeaseBook
from ingestion.specs.messages.protocol import Leases, Outcomes

Extra = tuple[bytes | None, int | None, Sequence[tuple[str, bytes | None]]]
NO_EXTRA: Extra = (None, None, ())


@dataclass
class _Record:
    partition: int
    offset: int
    payload: bytes | None
    deliveries: int = 0


@dataclass
class MemoryLeasedSource(LeasedSource):
    """A source that leases, in memory: see ``LeasedSource``."""

    records: Iterable[tuple[int, int, bytes | None]]
    batch_records: int = 100
    lock_s: float = 30.0
    acknowledgements: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # (partition, offset) → the last acknowledgement
    # Offsets that end with the first batch, by partition.
    without_record: dict[int, Outcomes] = field(default_factory=dict)
    # (partition, offset) → a record's key, timestamp and headers; none for those that are not there.
    extras: Mapping[tuple[int, int], Extra] = field(default_factory=dict)
    ack_failures: int = 0
    problem: str = ""
    _lease_book: LeaseBook = field(default_factory=LeaseBook)
    _waiting: deque[_Record] = field(default_factory=deque)
    _paused: bool = False
    _stopped: bool = False

    def open(self) -> None:
        self._stopped = False
        self._waiting.extend(_Record(p, o, payload) for p, o, payload in self.records)
        self.records = ()

    def poll(self, timeout_s: float) -> Batch | None:
        if self._paused or self._stopped or not self._waiting:
            return None
        records = [self._waiting.popleft() for _ in range(min(self.batch_records, len(self._waiting)))]
        for record in records:
            record.deliveries += 1
        extra, self.without_record = self.without_record, {}
        extras = [self.extras.get((r.partition, r.offset), NO_EXTRA) for r in records]
        return Batch(
            partitions=np.array([r.partition for r in records], dtype=np.int64),
            offsets=np.array([r.offset for r in records], dtype=np.int64),
            delivery_counts=np.array([r.deliveries for r in records], dtype=np.int64),
            payloads=[r.payload for r in records],
            keys=[e[0] for e in extras],
            timestamps_ms=[e[1] for e in extras],
            headers=[e[2] for e in extras],
            deadline=time.monotonic() + self.lock_s,
            held=records,
            extra=extra,
        )

    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        self._count(batch, verdicts)
        for record, verdict in zip(batch.held, verdicts.tolist(), strict=True):
            self.acknowledgements[(record.partition, record.offset)] = verdict
            if verdict == RELEASE:
                self._waiting.append(record)

    def _count(self, batch: Batch, verdicts: Ints | None) -> None:
        self._lease_book.count(batch.partitions, verdicts, max(0.0, self.lock_s - batch.seconds_left))

    @property
    def leases(self) -> Leases:
        return self._lease_book.totals

    def lapse(self, batch: Batch) -> None:
        """Nobody else holds a lock here: the records may come at once."""
        self._count(batch, None)
        self._waiting.extend(batch.held)

    def exhausted(self) -> bool:
        return self._stopped or not self._waiting

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def drain(self) -> list[Batch]:
        self._stopped = True
        return []

    def close(self) -> None:
        self._stopped = True
