"""What became of a share group's records that were lent here, and for how long they were held: a few numbers a poll."""

from __future__ import annotations

import math
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np

from ingestion.sources.base import ACCEPT, REJECT, RELEASE, Ints
from ingestion.specs.messages.protocol import Leases

_GROWTH = math.log(1.25)
_LONGEST_MS = 3_600_000  # no lock is longer
_MAX_PENDING = 100  # polls of a partition whose answers are waited for at most


@dataclass
class LeaseBook:
    """Thread-safe: each of a source's consumers notes its polls, and the loop reads the sums."""

    _totals: Leases = field(default_factory=Leases)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, partitions: Ints, verdicts: Ints | None, held_s: float) -> None:
        """One poll's records came to their end. ``verdicts``: None when they were left to their lock."""
        ended = [0] * (REJECT + 1) if verdicts is None else np.bincount(verdicts, minlength=REJECT + 1).tolist()
        bucket = bucket_ms(held_s * 1000)
        with self._lock:
            leases = self._totals
            self._totals = Leases.model_construct(
                acquired=leases.acquired + len(partitions),
                accepted=leases.accepted + ended[ACCEPT],
                rejected=leases.rejected + ended[REJECT],
                released=leases.released + ended[RELEASE],
                lock_expired=leases.lock_expired + len(partitions) - sum(ended),
                hold_ms={**leases.hold_ms, bucket: leases.hold_ms.get(bucket, 0) + len(partitions)},
                longest_hold_ms=max(leases.longest_hold_ms, math.ceil(held_s * 1000)),
            )

    def undo(self, verdicts: Ints) -> None:
        """The broker did not take these, which were noted: their locks had run out."""
        ended = np.bincount(verdicts, minlength=REJECT + 1).tolist()
        with self._lock:
            leases = self._totals
            self._totals = leases.model_copy(
                update={
                    "accepted": leases.accepted - ended[ACCEPT],
                    "rejected": leases.rejected - ended[REJECT],
                    "released": leases.released - ended[RELEASE],
                    "lock_expired": leases.lock_expired + sum(ended),
                }
            )

    @property
    def totals(self) -> Leases:
        with self._lock:
            return self._totals


@dataclass(eq=False)
class _PendingAck:
    """What was acknowledged of one poll, of one partition, until the broker has answered for all of it."""

    offsets: Ints
    acknowledgements: Ints | None  # None when it was left to its lock, or when it is known that it came too late
    unanswered: int


class PendingAcks:
    """What one consumer acknowledged and the broker has yet to answer; what it refuses is taken back from the book.

    Of the consumer's own thread, as its callback is.
    """

    def __init__(self, book: LeaseBook) -> None:
        self._lease_book = book
        self._by_partition: dict[int, deque[_PendingAck]] = defaultdict(
            lambda: deque(maxlen=_MAX_PENDING)
        )  # by partition

    def expect(self, partitions: Ints, offsets: Ints, verdicts: Ints | None) -> None:
        """One poll is acknowledged. ``verdicts``: None when it was left to its lock."""
        for partition in np.unique(partitions).tolist():
            is_here = partitions == partition
            pending = _PendingAck(offsets[is_here], None if verdicts is None else verdicts[is_here], int(is_here.sum()))
            self._by_partition[partition].append(pending)

    def answered(self, partition: int, offsets: set[int], accepted: bool) -> None:
        """The broker answered for these, which are of one poll: it took them, or their locks had run out."""
        waiting, offset = self._by_partition[partition], next(iter(offsets))
        # The oldest of them: the same offsets may have been delivered here again meanwhile.
        pending = next((pending for pending in waiting if offset in pending.offsets), None)
        if pending is None:
            return
        if not accepted and pending.acknowledgements is not None:
            self._lease_book.undo(pending.acknowledgements[np.isin(pending.offsets, list(offsets))])
        pending.unanswered -= len(offsets)
        if pending.unanswered <= 0:
            waiting.remove(pending)

    def overdue(self, partition: int) -> None:
        """No answer came in time for the newest: that is as good as a refusal, which adds nothing later."""
        waiting = self._by_partition[partition]
        if waiting and waiting[-1].acknowledgements is not None:
            self._lease_book.undo(waiting[-1].acknowledgements)
            waiting[-1].acknowledgements = None

    def forget(self) -> None:
        """Its consumer is gone: no answer comes any more."""
        self._by_partition.clear()


def bucket_ms(held_ms: float) -> int:
    """The upper end of the bucket for so long a time: a power of 1.25, rounded up."""
    capped = min(max(held_ms, 1.0), _LONGEST_MS)
    return math.ceil(1.25 ** math.ceil(math.log(capped) / _GROWTH - 1e-9) - 1e-9)
