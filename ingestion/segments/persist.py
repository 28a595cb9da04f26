"""Rows of some batches to sorted runs on disk, on a thread beside ingestion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import pyarrow as pa

from ingestion.rows import Columns, columns_of, conform
from ingestion.segments.intervals import Interval
from ingestion.segments.memory_run import MemoryRun
from ingestion.segments.spill import SpilledRun, Spiller


@dataclass
class Generation:
    """Rows in memory as they came: ``Decoded.rows`` with the records' numbers in column 0."""

    first_number: int  # the record number 0 in the order of all records
    batches: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    counts: Counter[Interval] = field(default_factory=Counter)

    def add(self, batch: pa.Table, counts: Counter[Interval]) -> None:
        """Take in a batch, of which ``counts`` are the rows by interval."""
        self.batches.append(batch)
        self.rows += len(batch)
        self.size_bytes += batch.nbytes
        self.counts.update(counts)


class Persister:
    """Persists one generation at a time; others wait for it. What can't be persisted stays in memory."""

    def __init__(self, spiller: Spiller) -> None:
        self._spiller = spiller
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="persist")
        self._pending: list[tuple[Generation, Future[list[SpilledRun]]]] = []
        self.failed: list[Generation] = []

    @property
    def size_bytes(self) -> int:
        """What is held in memory here."""
        return sum(g.size_bytes for g in [*self.failed, *(g for g, _ in self._pending)])

    def begin(self, generation: Generation, names: Sequence[str]) -> None:
        """Persist this one next, its columns in the order of ``names``."""
        future = self._thread.submit(self._persisted, generation, names)
        self._pending.append((generation, future))

    def ended(self, most_pending: int | None = None) -> list[tuple[Generation, list[SpilledRun]]]:
        """Which generations are persisted since this was last asked, and as what.

        ``most_pending``: wait until no more than so many are on their way.
        """
        if most_pending is not None:
            wait([future for _, future in self._pending[: max(0, len(self._pending) - most_pending)]])
        ready = []
        while self._pending and self._pending[0][1].done():
            generation, future = self._pending.pop(0)
            if future.exception() is None:
                ready.append((generation, future.result()))
            else:
                self.failed.append(generation)
        return ready

    def retry_failed(self, names: Sequence[str]) -> Iterator[tuple[Generation, list[SpilledRun]]]:
        """Try again, here, what failed. Raises ``DeepStorageError`` for the first that fails again."""
        while self.failed:
            runs = self._persisted(self.failed[0], names)
            yield self.failed.pop(0), runs

    def close(self) -> None:
        """Wait for what is on its way; its files are the folder's business."""
        self._thread.shutdown(cancel_futures=True)

    def _persisted(self, generation: Generation, names: Sequence[str]) -> list[SpilledRun]:
        """A run for each set of batches whose columns have the same types. All are written, or none."""
        runs: list[SpilledRun] = []
        try:
            for columns, batches in _group_by_types(generation.batches):
                fields = sorted(columns.fields, key=lambda f: names.index(f.name))
                rows = pa.concat_tables([conform(b, fields) for b in batches])
                run = MemoryRun.of(rows, self._spiller.shape, generation.first_number)
                runs.append(self._spiller.spill(run.blocks(run.fields, self._spiller.block_bytes)))
        except BaseException:
            for run_ in runs:
                run_.delete()
            raise
        generation.batches.clear()
        return runs


def _group_by_types(batches: Sequence[pa.Table]) -> list[tuple[Columns, list[pa.Table]]]:
    """Batches that agree on the types of their columns. Those that do not are kept apart until all types are known."""
    groups: list[tuple[Columns, list[pa.Table]]] = []
    for batch in batches:
        columns = columns_of([batch])
        for others, alike in groups:
            if others.agrees_with(columns):
                others.add(batch)
                alike.append(batch)
                break
        else:
            groups.append((columns, [batch]))
    return groups
