"""Rows of many batches on their way to segments, within bounds of memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from ingestion.rows import ROW, Columns, conform, row_indexes
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.intervals import Interval, count_by_interval
from ingestion.segments.memory_run import MemoryRun
from ingestion.segments.merge import Run, merge_runs, merge_tables
from ingestion.segments.persist import Generation, Persister
from ingestion.segments.record_positions import Integers, RecordPositions
from ingestion.segments.spill import SPILL_COMPRESSION, SpilledRun, Spiller
from ingestion.segments.table_shape import Shape, int64s
from ingestion.segments.writer import GROUP_BYTES, Target, write_rows
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.tasks.ingestion_spec import TuningConfig

MAX_INTERVALS = 200  # each is a file and a lock of the publish transaction
MAX_RANGES = 250_000  # of offsets: they stay in memory, and every one is published
MAX_COLUMNS = 10_000  # each row of a segment has them all
MAX_RECORDS = 20_000_000  # a byte for each is needed to write
_OPEN_RUNS = 16  # that are merged at once
_MIN_BLOCK_BYTES = 64 * 1024


class RowIndex:
    """Gathers rows until ``full``, or until its owner thinks it time, and writes them as segments.

    In memory are at most about ``maxBytesInMemory`` of rows: those that gather, those that are being persisted, and
    ``maxPendingPersists`` times those that wait for it have equal shares. What is more is sorted, with rollup made
    fewer, and kept on disk, in a folder of its own in ``scratch``, by a thread beside ingestion. Whatever the batches
    and whatever was kept on disk, the segments are those of one batch of all rows. For one thread only. Close it.
    """

    def __init__(
        self, *, schema: DataSchema, tuning: TuningConfig, scratch: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._schema = schema
        self._tuning = tuning
        self._scratch = scratch
        self._clock = clock
        self._shape = Shape.of(schema)
        self._granularity = schema.granularitySpec.segmentGranularity
        self._folder = scratch / f"index-{uuid4().hex}"
        self._share_bytes = share_bytes(tuning)
        self._block_bytes = max(tuning.maxBytesInMemory // (4 * _OPEN_RUNS), _MIN_BLOCK_BYTES)
        spec = tuning.indexSpecForIntermediatePersists or SPILL_COMPRESSION
        self._spiller = Spiller(self._folder, self._shape, self._granularity, spec, self._block_bytes)
        self._persister = Persister(self._spiller)
        self._begin()

    def _begin(self) -> None:
        self._next_number = time.time_ns()
        self._open = Generation(self._next_number)
        self._places = RecordPositions()
        self._columns = Columns()
        self._runs: list[SpilledRun] = []
        self._counts: Counter[Interval] = Counter()
        self._changes = 0
        self._persisted_at = self._clock()

    @property
    def rows(self) -> int:
        """How many rows there are; with rollup, as far as is known yet, at most so many."""
        self._count_persisted(self._persister.ended())
        return self._counts.total()

    @property
    def intervals(self) -> int:
        """How many segment intervals they fall into."""
        self._count_persisted(self._persister.ended())
        return len(self._counts)

    @property
    def size_bytes(self) -> int:
        """How much memory the rows need now, with those that are just being persisted."""
        self._count_persisted(self._persister.ended())
        return self._open.size_bytes + self._persister.size_bytes

    @property
    def gathering_bytes(self) -> int:
        """How much memory the rows need that are not being persisted yet."""
        return self._open.size_bytes

    @property
    def full(self) -> bool:
        """Whether it is time to write.

        ``maxRowsPerSegment`` rows of an interval, ``maxTotalRows`` of all; or more intervals, columns, ranges of
        offsets or records than are good for one publish.
        """
        most = self._tuning.maxTotalRows
        return (
            (most is not None and self.rows >= most)
            or max(self._counts.values(), default=0) >= self._tuning.maxRowsPerSegment
            or len(self._counts) > MAX_INTERVALS
            or len(self._columns) > MAX_COLUMNS
            or self._places.runs + self._changes > MAX_RANGES
            or len(self._places) >= MAX_RECORDS
        )

    def add(self, rows: pa.Table, partitions: Integers, offsets: Integers) -> None:
        """Take in the rows of a batch, as ``Decoded.rows`` has them.

        Column 0 is each row's index into ``partitions`` and ``offsets``, ascending. Waits when more than
        ``maxPendingPersists`` persists would wait. Raises ``DeepStorageError`` when the local disk refused an earlier
        persist and does so again; then this batch is not taken in, and nothing that was is lost.
        """
        for generation, runs in self._persister.retry_failed(self._names):
            self._count_persisted([(generation, runs)])
        base = self._places.add(partitions, offsets)
        if not len(rows):
            return
        self._columns.add(rows)
        counts, changes = count_by_interval(int64s(rows.column(1).cast(pa.int64())), self._granularity)
        self._counts.update(counts)
        self._changes += changes
        self._open.add(rows.set_column(0, ROW, pa.array(row_indexes(rows) + base)), counts)
        self._count_persisted(self._persister.ended())
        if self._due:
            self.persist()

    def persist(self) -> bool:
        """Begin to persist what gathers, as ``add`` does by itself; False when the local disk refused before."""
        self._count_persisted(self._persister.ended(most_pending=self._tuning.maxPendingPersists))
        if self._persister.failed:
            return False  # it is the next ``add`` that says so
        self._persister.begin(self._open, self._names)
        self._open = Generation(self._next_number)
        self._persisted_at = self._clock()
        return True

    def settle(self) -> None:
        """Wait for what is being persisted."""
        self._count_persisted(self._persister.ended(most_pending=0))

    def write(self, *, version: str, storage: DeepStorage, ids: ColumnIds) -> list[SegmentFile]:
        """Write and store all rows, one file for each interval and ``maxRowsPerSegment`` rows, in the order of time.

        They stay until ``clear``: after an error it may be called again, for the same rows. Raises
        ``DeepStorageError``, ``SegmentError`` when what was kept on disk is damaged, and what asking for ids does.
        """
        self.settle()
        fields = self._shape.fields(self._columns)
        self._fit_types(fields)
        self._thin_out(fields)
        runs: list[Run] = [*self._runs, *self._held(fields)]
        block_bytes = GROUP_BYTES if len(runs) == 1 else self._block_bytes
        tuning = self._tuning
        most = tuning.maxRowsPerSegment
        target = Target(self._schema, version, storage, self._scratch, most, tuning.indexSpec, ids)
        files = write_rows(merge_runs(runs, self._shape, fields, block_bytes), self._places, target)
        pa.default_memory_pool().release_unused()
        return files

    def clear(self) -> None:
        """Forget all rows and remove what is on disk."""
        self.settle()
        self._persister.failed.clear()
        for run in self._runs:
            run.delete()
        with suppress(OSError):
            self._folder.rmdir()
        self._begin()

    def close(self) -> None:
        """Forget all rows for good, and write no more."""
        self.clear()
        self._persister.close()

    @property
    def _names(self) -> list[str]:
        return [f.name for f in self._columns.fields]

    @property
    def _due(self) -> bool:
        """Whether to persist what is in memory."""
        return (
            self._open.rows >= self._tuning.maxRowsInMemory
            or self._open.size_bytes >= self._share_bytes
            or self._clock() - self._persisted_at >= self._tuning.intermediatePersistPeriod.total_seconds()
        )

    def _count_persisted(self, ended: Sequence[tuple[Generation, list[SpilledRun]]]) -> None:
        """Count with the rows that were persisted, now that it is known how many they are."""
        for generation, runs in ended:
            self._counts.subtract(generation.counts)
            for run in runs:
                self._counts.update(run.counts)
            self._runs += runs
        if ended:
            pa.default_memory_pool().release_unused()

    def _held(self, fields: list[pa.Field]) -> list[MemoryRun]:
        """What is in memory, also what could not be persisted."""
        generations = [*self._persister.failed, self._open]
        batches = [batch for g in generations for batch in g.batches]
        columns = self._columns.fields
        if not batches:
            return []
        rows = pa.concat_tables([conform(b, columns) for b in batches])
        return [MemoryRun.of(rows, self._shape, self._next_number)]

    def _fit_types(self, fields: list[pa.Field]) -> None:
        """Sort and merge again the runs with a column whose type a later batch changed."""
        for run in [r for r in self._runs if not r.columns.agrees_with(self._columns)]:
            rows = merge_tables(list(run.blocks(fields, self._block_bytes)), self._shape)
            self._replace([run], [rows])

    def _thin_out(self, fields: list[pa.Field]) -> None:
        """Merge runs until no more than a few overlap anywhere."""
        while len(deep := _most_overlapping(self._runs)) > _OPEN_RUNS:
            deep.sort(key=lambda run: run.rows)
            for start in range(0, len(deep), _OPEN_RUNS):
                some = deep[start : start + _OPEN_RUNS]
                if len(some) > 1:
                    self._replace(some, merge_runs(some, self._shape, fields, self._block_bytes))

    def _replace(self, runs: Sequence[SpilledRun], blocks: Iterable[pa.Table]) -> None:
        merged = self._spiller.spill(blocks)
        for run in runs:
            self._counts.subtract(run.counts)
            self._runs.remove(run)
            run.delete()
        self._counts.update(merged.counts)
        self._runs.append(merged)


def share_bytes(tuning: TuningConfig) -> int:
    """Of ``maxBytesInMemory``, what rows that gather may need; others are being persisted, or wait for it."""
    return tuning.maxBytesInMemory // (2 + tuning.maxPendingPersists)


def _most_overlapping(runs: Sequence[SpilledRun]) -> list[SpilledRun]:
    """The runs around the time that most of them have rows before and after."""
    edges = sorted([*((r.first_ms, 0) for r in runs), *((r.last_ms, 1) for r in runs)])
    depth = deepest = at = 0
    for ms, is_end in edges:
        depth += -1 if is_end else 1
        if depth > deepest:
            deepest, at = depth, ms
    return [r for r in runs if r.first_ms <= at <= r.last_ms]
