"""Quarantined records as a source: what the control plane has kept, a page at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

from ingestion.sources.base import Batch, Ints, LeasedSource
from ingestion.specs.messages.replays import KeptRecord

BATCH_SECONDS = 600.0
FetchPage = Callable[[int], list[KeptRecord]]  # those with numbers above the one given; none when there are no more


class QuarantineSource(LeasedSource):
    """See ``LeasedSource``: a replay holds its records by their state. ``poll`` blocks until the control plane answers.

    All of them are suspect: they are decoded in a child process, since some are here because a decoder died of them.
    """

    def __init__(self, pages: FetchPage) -> None:
        self._pages = pages
        self._after_id = 0
        self._retries: deque[list[KeptRecord]] = deque()
        self._exhausted = False

    def open(self) -> None:
        """Nothing to join."""

    def poll(self, timeout_s: float) -> Batch | None:
        if self._exhausted:
            return None
        records = self._retries.popleft() if self._retries else self._pages(self._after_id)
        if not records:
            self._exhausted = True
            return None
        self._after_id = max(self._after_id, records[-1].number)
        return Batch(
            partitions=np.array([r.partition for r in records], dtype=np.int64),
            offsets=np.array([r.offset for r in records], dtype=np.int64),
            delivery_counts=np.ones(len(records), dtype=np.int64),
            payloads=[r.payload for r in records],
            keys=[r.key for r in records],
            timestamps_ms=[r.timestamp_ms for r in records],
            headers=[r.headers for r in records],
            deadline=time.monotonic() + BATCH_SECONDS,
            held=records,
            suspect=True,
        )

    def acknowledge(self, batch: Batch, verdicts: Ints) -> None:
        """Nobody waits for it: a publish alone says what became of a record."""

    def lapse(self, batch: Batch) -> None:
        self._retries.append(batch.held)

    def exhausted(self) -> bool:
        return self._exhausted

    def drain(self) -> list[Batch]:
        self._exhausted = True
        return []

    def close(self) -> None:
        self._exhausted = True
