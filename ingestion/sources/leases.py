"""What became of a share group's records that were lent here, and for how long they were held: a few numbers a poll."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

import numpy as np

from ingestion.sources.base import ACCEPT, REJECT, RELEASE, Ints
from ingestion.specs.protocol import Leases

_GROWTH = math.log(1.25)
_LONGEST_MS = 3_600_000  # no lock is longer


@dataclass
class LeaseBook:
    """Thread-safe: each of a source's consumers notes its polls, and the loop reads the sums."""

    _seen: Leases = field(default_factory=Leases)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, partitions: Ints, verdicts: Ints | None, held_s: float) -> None:
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


def bucket_ms(held_ms: float) -> int:
    """The upper end of the bucket for so long a time: a power of 1.25, rounded up."""
    capped = min(max(held_ms, 1.0), _LONGEST_MS)
    return math.ceil(1.25 ** math.ceil(math.log(capped) / _GROWTH - 1e-9) - 1e-9)
