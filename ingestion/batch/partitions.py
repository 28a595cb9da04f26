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

from ingestion.batch.bins import Bins, bins_of
from ingestion.batch.errors import InputRefused
from ingestion.batch.reading import Chunk, Place
from ingestion.rows import JSON_TYPE, LIST_TYPE, Columns, conformed
from ingestion.specs.schema.partitions import DividingSpec, HashedPartitionsSpec
from ingestion.specs.tasks.batch import BatchSpec

SAMPLED = 2_048  # of an interval, at most
_HASHES = 2.0**64
_TIME_AT = 1
_LEAD = 2  # columns of a chunk before its dimensions
_IS_ROW = "is_row"
Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Keys:
    """By what rows are dealt out, and which become one. Travels to executors."""

    by: DividingSpec
    grouped: bool  # a sample is of rows that are rolled up
    dimensions: tuple[pa.Field, ...]  # all that hold something
    divided: tuple[pa.Field, ...]  # those of ``by``, in its order

    @classmethod
    def of(cls, spec: BatchSpec, held: Iterable[pa.Schema]) -> Keys:
        """``held``: of all chunks. Raises ``InputRefused`` for dimensions whose values have no ranges."""
        by = spec.tuningConfig.dividing
        if by is None:
            raise ValueError("the spec deals out by rows alone")
        columns = Columns()
        for schema in held:
            columns.add(schema.empty_table(), 0)
        named = {f.name: f for f in columns.fields}
        divided = tuple(named[name] for name in by.dimensions if name in named)
        several = next((f for f in divided if f.type in (JSON_TYPE, LIST_TYPE)), None)
        if several is not None and not isinstance(by, HashedPartitionsSpec):
            raise InputRefused(f"Column {several.name!r} holds lists or JSON, which have no ranges: use hashed.")
        grouped = spec.dataSchema.granularitySpec.rollup and by.sizes_grouped
        return cls(by, grouped, tuple(columns.fields), divided)

    @property
    def needs_sample(self) -> bool:
        """Whether the number of an interval's rows is not enough to know its partitions."""
        if isinstance(self.by, HashedPartitionsSpec):
            return self.grouped and self.by.numShards is None
        return True

    def sampled(self, split: int, chunk: Chunk) -> Sample:
        """Of its rows."""
        rows = chunk.table
        if self.grouped:
            hashes = hashed([rows.column(_TIME_AT), *_columns(rows, self.dimensions)])
        else:
            numbers = pa.array(np.arange(len(rows)))
            hashes = hashed([numbers, pa.repeat(split, len(rows)), pa.repeat(chunk.number, len(rows))])
        return Sample.of(hashes, self.values_of(rows))

    def values_of(self, rows: pa.Table) -> pa.Table | None:
        """By which ranges are found; None where rows go by hash, or have no such values at all."""
        if isinstance(self.by, HashedPartitionsSpec) or not self.divided:
            return None
        return pa.table(_columns(rows, self.divided), names=[f"c{i}" for i in range(len(self.divided))])

    def hashes_of(self, rows: pa.Table) -> Hashes:
        """Of what the spec names; where it names nothing, of what makes rows one."""
        if self.by.dimensions:
            return hashed(_columns(rows, self.divided)) if self.divided else np.zeros(len(rows), np.uint64)
        return hashed([rows.column(_TIME_AT), *_columns(rows, self.dimensions)])


@dataclass(frozen=True)
class Sample:
    """Of the rows of an interval, those with the least hashes, each hash once."""

    hashes: Hashes  # ascending
    values: pa.Table | None  # ``Keys.values_of`` these rows

    @classmethod
    def of(cls, hashes: Hashes, values: pa.Table | None) -> Sample:
        """Of rows with these hashes and values."""
        distinct, first = np.unique(hashes, return_index=True)
        chosen = pa.array(first[:SAMPLED])
        return cls(distinct[:SAMPLED], None if values is None else values.take(chosen).combine_chunks())

    def joined(self, other: Sample) -> Sample:
        """That of both together."""
        both = [s.values for s in (self, other) if s.values is not None]
        return Sample.of(np.concatenate([self.hashes, other.hashes]), pa.concat_tables(both) if both else None)

    @property
    def distinct(self) -> float:
        """About how many hashes there are in all."""
        if len(self.hashes) < SAMPLED:
            return len(self.hashes)
        return (SAMPLED - 1) / (float(self.hashes[-1]) / _HASHES)

    def bounds(self, partitions: int) -> pa.Table | None:
        """Where the second range begins, the third, …: ranges of about equal sizes."""
        if self.values is None:
            return None
        ordered = self.values.take(_order(self.values))
        places = np.unique(np.arange(1, partitions) * len(ordered) // partitions)
        return ordered.take(pa.array(places))


@dataclass(frozen=True)
class Division:
    """Which bin each row goes to."""

    keys: Keys
    bins: Bins
    bounds: Mapping[Place, pa.Table | None]  # of ranges

    def pieces(self, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
        """Its rows by bin, those of a bin in their order."""
        first, many = self.bins.of[chunk.place]
        if many == 1:
            yield first, chunk
            return
        rows = chunk.table
        partitions = self._partitions(rows, chunk.place, many)
        for number in np.unique(partitions):
            some = rows.take(pa.array(np.flatnonzero(partitions == number)))
            yield first + int(number), Chunk.of(chunk.place, chunk.number, some, ())

    def _partitions(self, rows: pa.Table, place: Place, many: int) -> Numbers:
        if isinstance(self.keys.by, HashedPartitionsSpec):
            return (self.keys.hashes_of(rows) % np.uint64(many)).astype(np.int64)
        values, bounds = self.keys.values_of(rows), self.bounds[place]
        return np.zeros(len(rows), np.int64) if values is None or bounds is None else ranged(values, bounds)


def division_of(
    spec: BatchSpec, keys: Keys, rows: Mapping[Place, int], samples: Mapping[Place, Sample], writers: int
) -> Division:
    """``rows``: how many each interval has."""
    sizes = {place: samples[place].distinct if keys.grouped and samples else float(n) for place, n in rows.items()}
    partitions = {place: keys.by.partitions_of(size) for place, size in sizes.items()}
    bounds = {place: sample.bounds(partitions[place]) for place, sample in samples.items()}
    return Division(keys, bins_of(rows, spec.tuningConfig.rows_per_segment, writers, partitions), bounds)


def hashed(columns: Sequence[pa.ChunkedArray | pa.Array]) -> Hashes:
    """Of each row: the same in every process, and of equal values."""
    names = [f"c{i}" for i in range(len(columns))]
    engine = duckdb.connect(":memory:", config={"threads": 1})
    try:
        engine.register("rows", pa.table([_plain(c) for c in columns], names=names))
        found = engine.sql(f"SELECT hash({', '.join(names)}) AS h FROM rows").to_arrow_table()  # noqa: S608 - our names
    finally:
        engine.close()
    return np.asarray(found.column("h").to_numpy(), np.uint64)


def ranged(values: pa.Table, bounds: pa.Table) -> Numbers:
    """Which of the ranges between the bounds each row is in: a range begins with its bound. Nulls are in the last."""
    both = pa.concat_tables([bounds, values])
    is_row = np.arange(len(both)) >= len(bounds)
    order = _order(both.append_column(_IS_ROW, pa.array(is_row))).to_numpy()
    found = np.empty(len(both), np.int64)
    found[order] = np.cumsum(~is_row[order])
    return found[len(bounds) :]


def _order(values: pa.Table) -> pa.Array:
    return pc.sort_indices(values, sort_keys=[(name, "ascending") for name in values.column_names])


def _columns(rows: pa.Table, fields: Sequence[pa.Field]) -> list[pa.ChunkedArray]:
    columns: list[pa.ChunkedArray] = conformed(rows, fields, _LEAD).columns
    return columns[_LEAD:]


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
