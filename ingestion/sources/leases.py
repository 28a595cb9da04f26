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
_WAITED_FOR = 100  # polls of a partition whose answers are waited for at most


@dataclass
class LeaseBook:
    """Thread-safe: each of a source's consumers notes its polls, and the loop reads the sums."""

    _seen: Leases = field(default_factory=Leases)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, partitions: Ints, verdicts: Ints | None, held_s: float) -> None:
        """One poll's records came to their end. ``verdicts``: None when they were left to their lock."""
        ended = [0] * (REJECT + 1) if verdicts is None else np.bincount(verdicts, minlength=REJECT + 1).tolist()
        bucket = bucket_ms(held_s * 1000)
        with self._lock:
            seen = self._seen
            self._seen = Leases.model_construct(
                acquired=seen.acquired + len(partitions),
                accepted=seen.accepted + ended[ACCEPT],
                rejected=seen.rejected + ended[REJECT],
                released=seen.released + ended[RELEASE],
                lock_expired=seen.lock_expired + len(partitions) - sum(ended),
                hold_ms={**seen.hold_ms, bucket: seen.hold_ms.get(bucket, 0) + len(partitions)},
                longest_hold_ms=max(seen.longest_hold_ms, math.ceil(held_s * 1000)),
            )

    def take_back(self, verdicts: Ints) -> None:
        """The broker did not take these, which were noted: their locks had run out."""
        ended = np.bincount(verdicts, minlength=REJECT + 1).tolist()
        with self._lock:
            seen = self._seen
            self._seen = seen.model_copy(
                update={
                    "accepted": seen.accepted - ended[ACCEPT],
                    "rejected": seen.rejected - ended[REJECT],
                    "released": seen.released - ended[RELEASE],
                    "lock_expired": seen.lock_expired + sum(ended),
                }
            )

    @property
    def seen(self) -> Leases:
        with self._lock:
            return self._seen


@dataclass(eq=False)
class _Said:
    """What was acknowledged of one poll, of one partition, until the broker has answered for all of it."""

    offsets: Ints
    verdicts: Ints | None  # None when it was left to its lock, or when it is known that it came too late
    unanswered: int


class Unanswered:
    """What one consumer acknowledged and the broker has yet to answer; what it refuses is taken back from the book.

    Of the consumer's own thread, as its callback is.
    """

    def __init__(self, book: LeaseBook) -> None:
        self._book = book
        self._said: dict[int, deque[_Said]] = defaultdict(lambda: deque(maxlen=_WAITED_FOR))  # by partition

    def expect(self, partitions: Ints, offsets: Ints, verdicts: Ints | None) -> None:
        """One poll is acknowledged. ``verdicts``: None when it was left to its lock."""
        for partition in np.unique(partitions).tolist():
            here = partitions == partition
            said = _Said(offsets[here], None if verdicts is None else verdicts[here], int(here.sum()))
            self._said[partition].append(said)

    def answered(self, partition: int, offsets: set[int], taken: bool) -> None:
        """The broker answered for these, which are of one poll: it took them, or their locks had run out."""
        waiting, one = self._said[partition], next(iter(offsets))
        # The oldest of them: the same offsets may have been delivered here again meanwhile.
        said = next((said for said in waiting if one in said.offsets), None)
        if said is None:
            return
        if not taken and said.verdicts is not None:
            self._book.take_back(said.verdicts[np.isin(said.offsets, list(offsets))])
        said.unanswered -= len(offsets)
        if said.unanswered <= 0:
            waiting.remove(said)

    def overdue(self, partition: int) -> None:
        """No answer came in time for the newest: that is as good as a refusal, which adds nothing later."""
        waiting = self._said[partition]
        if waiting and waiting[-1].verdicts is not None:
            self._book.take_back(waiting[-1].verdicts)
            waiting[-1].verdicts = None

    def forget(self) -> None:
        """Its consumer is gone: no answer comes any more."""
        self._said.clear()


def bucket_ms(held_ms: float) -> int:
    """The upper end of the bucket for so long a time: a power of 1.25, rounded up."""
    capped = min(max(held_ms, 1.0), _LONGEST_MS)
    return math.ceil(1.25 ** math.ceil(math.log(capped) / _GROWTH - 1e-9) - 1e-9)
