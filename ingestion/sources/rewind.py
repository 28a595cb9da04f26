"""The records of a rewind's part as a source: given offsets, read by an ordinary consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ingestion.sources.base import Batch, StoredOffsetSource
from ingestion.sources.repair import RepairSource
from ingestion.specs.messages.protocol import Advance, RepairRange

MAX_OFFSETS = 20_000  # that one batch reaches over: few holes lie between the records


class RewindSource(StoredOffsetSource):
    """See ``StoredOffsetSource``. What is given up is read again from behind the last publish.

    ``make_reader``: of offsets that are to be read; it reads each partition's in their order.
    """

    whole = True

    def __init__(self, ranges: Iterable[RepairRange], make_reader: Callable[[list[RepairRange]], RepairSource]) -> None:
        self._left = list(ranges)
        self._make_reader = make_reader
        self._reader = make_reader(self._left)

    def open(self) -> None:
        """Nothing to do: each batch has a consumer of its own."""

    def poll(self, timeout_s: float) -> Batch | None:
        batch = self._reader.poll(timeout_s)
        return None if batch is None else replace(batch, progress=_progress(batch))

    def exhausted(self) -> bool:
        return self._reader.exhausted()

    def rewind(self, partitions: Iterable[int]) -> None:
        self._reader.close()
        self._reader = self._make_reader(self._left)

    def published(self, ends: Mapping[int, int]) -> None:
        cut = [r.model_copy(update={"start": max(r.start, ends.get(r.partition, 0))}) for r in self._left]
        self._left = [r for r in cut if r.start < r.end]

    def lost(self) -> Mapping[int, int | None]:
        return {}

    def close(self) -> None:
        self._reader.close()

    @property
    def waiting(self) -> int | None:
        return None


def _progress(batch: Batch) -> dict[int, Advance]:
    """From the first to the last offset of each partition, whatever lies between is not of the batch."""
    spans = {p: (start, end) for p, start, end in batch.offset_spans()}
    for partition, outcomes in batch.extra.items():
        ranges = [*outcomes.empty, *outcomes.gap, *([spans[partition]] if partition in spans else [])]
        spans[partition] = min(start for start, _ in ranges), max(end for _, end in ranges)
    return {p: Advance(start=start, end=end) for p, (start, end) in spans.items()}
