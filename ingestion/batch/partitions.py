"""Which partition of its interval a row goes to, where a spec says by what: by hash, or by ranges of dimensions.

All chunks are told apart by the same columns in the same types, whatever each of them holds. How many partitions an
interval needs, and where its ranges end, a sample says: of its rows, or where they may become one of those that they
will become. It has the least hashes, so that samples of parts together are the sample of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.batch.bins import Bins, plan_bins
from ingestion.batch.errors import InputRefused
from ingestion.batch.reading import Chunk, IntervalMs
from ingestion.rows import JSON_TYPE, LIST_TYPE, Columns, conform
from ingestion.specs.schema.partitions import DividingSpec, HashedPartitionsSpec
from ingestion.specs.tasks.batch import BatchSpec

SAMPLE_SIZE = 2_048  # of an interval, at most
_HASHES = 2.0**64
_TIME_COLUMN = 1
_LEAD_COLUMNS = 2  # columns of a chunk before its dimensions
_IS_ROW = "is_row"
Hashes = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PartitionKeys:
    """By what rows are dealt out, and which become one. Travels to executors."""

    dividing_spec: DividingSpec
    grouped: bool  # a sample is of rows that are rolled up
    dimensions: tuple[pa.Field, ...]  # all that hold something
    divided: tuple[pa.Field, ...]  # those of ``dividing_spec``, in its order

    @classmethod
    def of(cls, spec: BatchSpec, schemas: Iterable[pa.Schema]) -> PartitionKeys:
        """``schemas``: of all chunks. Raises ``InputRefused`` for dimensions whose values have no ranges."""
        by = spec.tuningConfig.dividing
        if by is None:
            raise ValueError("the spec deals out by rows alone")
        columns = Columns()
        for schema in schemas:
            columns.add(schema.empty_table(), 0)
        named = {f.name: f for f in columns.fields}
        divided = tuple(named[name] for name in by.dimensions if name in named)
        several = next((f for f in divided if f.type in (JSON_TYPE, LIST_TYPE)), None)
        if several is not None and not isinstance(by, HashedPartitionsSpec):
            raise InputRefused(f"Column {several.name!r} has lists or JSON, which have no ranges: use hashed.")
        grouped = spec.dataSchema.granularitySpec.rollup and by.sizes_grouped
        return cls(by, grouped, tuple(columns.fields), divided)

    @property
    def needs_sample(self) -> bool:
        """Whether the number of an interval's rows is not enough to know its partitions."""
        if isinstance(self.dividing_spec, HashedPartitionsSpec):
            return self.grouped and self.dividing_spec.numShards is None
        return True

    def sampled(self, split: int, chunk: Chunk) -> Sample:
        """Of its rows."""
        rows = chunk.table
        if self.grouped:
            hashes = hash_rows([rows.column(_TIME_COLUMN), *_select_columns(rows, self.dimensions)])
        else:
            numbers = pa.array(np.arange(len(rows)))
            hashes = hash_rows([numbers, pa.repeat(split, len(rows)), pa.repeat(chunk.number, len(rows))])
        return Sample.of(hashes, self.values_of(rows))

    def values_of(self, rows: pa.Table) -> pa.Table | None:
        """By which ranges are found; None where rows go by hash, or have no such values at all."""
        if isinstance(self.dividing_spec, HashedPartitionsSpec) or not self.divided:
            return None
        return pa.table(_select_columns(rows, self.divided), names=[f"c{i}" for i in range(len(self.divided))])

    def hashes_of(self, rows: pa.Table) -> Hashes:
        """Of what the spec names; where it names nothing, of what makes rows one."""
        if self.dividing_spec.dimensions:
            return hash_rows(_select_columns(rows, self.divided)) if self.divided else np.zeros(len(rows), np.uint64)
        return hash_rows([rows.column(_TIME_COLUMN), *_select_columns(rows, self.dimensions)])


@dataclass(frozen=True)
class Sample:
    """Of the rows of an interval, those with the least hashes, each hash once."""

    hashes: Hashes  # ascending
    values: pa.Table | None  # ``PartitionKeys.values_of`` these rows

    @classmethod
    def of(cls, hashes: Hashes, values: pa.Table | None) -> Sample:
        """Of rows with these hashes and values."""
        distinct, first = np.unique(hashes, return_index=True)
        chosen = pa.array(first[:SAMPLE_SIZE])
        return cls(distinct[:SAMPLE_SIZE], None if values is None else values.take(chosen).combine_chunks())

    def joined(self, other: Sample) -> Sample:
        """That of both together."""
        tables = [s.values for s in (self, other) if s.values is not None]
        return Sample.of(np.concatenate([self.hashes, other.hashes]), pa.concat_tables(tables) if tables else None)

    @property
    def distinct(self) -> float:
        """About how many hashes there are in all."""
        if len(self.hashes) < SAMPLE_SIZE:
            return len(self.hashes)
        return (SAMPLE_SIZE - 1) / (float(self.hashes[-1]) / _HASHES)

    def bounds(self, partitions: int) -> pa.Table | None:
        """Where the second range begins, the third, …: ranges of about equal sizes."""
        if self.values is None:
            return None
        ordered = self.values.take(_sort_indices(self.values))
        places = np.unique(np.arange(1, partitions) * len(ordered) // partitions)
        return ordered.take(pa.array(places))


@dataclass(frozen=True)
class Partitioning:
    """Which bin each row goes to."""

    keys: PartitionKeys
    bins: Bins
    bounds: Mapping[IntervalMs, pa.Table | None]  # of ranges

    def pieces(self, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
        """Its rows by bin, those of a bin in their order."""
        first, partition_count = self.bins.by_interval[chunk.place]
        if partition_count == 1:
            yield first, chunk
            return
        rows = chunk.table
        partitions = self._partitions(rows, chunk.place, partition_count)
        for number in np.unique(partitions):
            some = rows.take(pa.array(np.flatnonzero(partitions == number)))
            yield first + int(number), Chunk.of(chunk.place, chunk.number, some, ())

    def _partitions(self, rows: pa.Table, place: IntervalMs, partition_count: int) -> Int64s:
        if isinstance(self.keys.dividing_spec, HashedPartitionsSpec):
            return (self.keys.hashes_of(rows) % np.uint64(partition_count)).astype(np.int64)
        values, bounds = self.keys.values_of(rows), self.bounds[place]
        return np.zeros(len(rows), np.int64) if values is None or bounds is None else find_ranges(values, bounds)


def plan_partitions(
    spec: BatchSpec,
    keys: PartitionKeys,
    rows: Mapping[IntervalMs, int],
    samples: Mapping[IntervalMs, Sample],
    writers: int,
) -> Partitioning:
    """``rows``: how many each interval has."""
    sizes = {place: samples[place].distinct if keys.grouped and samples else float(n) for place, n in rows.items()}
    partitions = {place: keys.dividing_spec.partitions_of(size) for place, size in sizes.items()}
    bounds = {place: sample.bounds(partitions[place]) for place, sample in samples.items()}
    return Partitioning(keys, plan_bins(rows, spec.tuningConfig.rows_per_segment, writers, partitions), bounds)


def hash_rows(columns: Sequence[pa.ChunkedArray | pa.Array]) -> Hashes:
    """Of each row: the same in every process, and of equal values."""
    names = [f"c{i}" for i in range(len(columns))]
    engine = duckdb.connect(":memory:", config={"threads": 1})
    try:
        engine.register("rows", pa.table([_storage_values(c) for c in columns], names=names))
        hash_table = engine.sql(f"SELECT hash({', '.join(names)}) AS h FROM rows").to_arrow_table()  # noqa: S608 - our names
    finally:
        engine.close()
    return np.asarray(hash_table.column("h").to_numpy(), np.uint64)


def find_ranges(values: pa.Table, bounds: pa.Table) -> Int64s:
    """Which of the ranges between the bounds each row is in: a range begins with its bound. Nulls are in the last."""
    merged = pa.concat_tables([bounds, values])
    is_row = np.arange(len(merged)) >= len(bounds)
    order = _sort_indices(merged.append_column(_IS_ROW, pa.array(is_row))).to_numpy()
    range_numbers = np.empty(len(merged), np.int64)
    range_numbers[order] = np.cumsum(~is_row[order])
    return range_numbers[len(bounds) :]


def _sort_indices(values: pa.Table) -> pa.Array:
    return pc.sort_indices(values, sort_keys=[(name, "ascending") for name in values.column_names])


def _select_columns(rows: pa.Table, fields: Sequence[pa.Field]) -> list[pa.ChunkedArray]:
    columns: list[pa.ChunkedArray] = conform(rows, fields, _LEAD_COLUMNS).columns
    return columns[_LEAD_COLUMNS:]


def _storage_values(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
