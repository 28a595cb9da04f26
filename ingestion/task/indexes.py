"""The rows that gather: in one index, or in one for each partition where partitions may go to another member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ingestion.rows import row_indexes
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.index import RowIndex, share_bytes
from ingestion.sources.base import Ints
from ingestion.specs.messages.protocol import Assignment, SegmentFile

_ALL = -1


class Indexes:
    """``by_partition``: each partition's rows by themselves, so that they can be dropped by themselves."""

    def __init__(self, assignment: Assignment, scratch: Path, by_partition: bool) -> None:
        self._schema = assignment.spec.dataSchema
        self._tuning = assignment.spec.tuningConfig
        self._version = assignment.version
        self._scratch = scratch
        self._by_partition = by_partition
        self._indexes: dict[int, RowIndex] = {}

    def split_by_index(self, rows: pa.Table, partitions: Ints) -> Iterator[tuple[RowIndex, pa.Table]]:
        """The rows of a batch, and which index each of them is to be added to."""
        if not self._by_partition:
            yield self._index_of(_ALL), rows
            return
        row_partitions = partitions[row_indexes(rows)]
        for partition in np.unique(row_partitions).tolist():
            chosen = row_partitions == partition
            yield self._index_of(partition), rows if chosen.all() else rows.filter(pa.array(chosen))

    def _index_of(self, partition: int) -> RowIndex:
        if partition not in self._indexes:
            self._indexes[partition] = RowIndex(schema=self._schema, tuning=self._tuning, scratch=self._scratch)
        return self._indexes[partition]

    def make_room(self) -> None:
        """Keep all partitions together within what one may need: the largest are persisted first."""
        indexes = list(self._indexes.values())
        if len(indexes) < 2:
            return  # it does so by itself
        while sum(i.gathering_bytes for i in indexes) >= share_bytes(self._tuning):
            if not max(indexes, key=lambda i: i.gathering_bytes).persist():
                return
        if sum(i.size_bytes for i in indexes) >= self._tuning.maxBytesInMemory:
            for index in indexes:
                index.settle()

    @property
    def full(self) -> bool:
        """Whether it is time to write."""
        indexes = list(self._indexes.values())
        most = self._tuning.maxTotalRows
        return any(i.full for i in indexes) or (most is not None and sum(i.rows for i in indexes) >= most)

    @property
    def intervals(self) -> int:
        """How many segments there will be at least."""
        return sum(i.intervals for i in self._indexes.values())

    def write(self, storage: DeepStorage, ids: ColumnIds) -> list[SegmentFile]:
        """Write and store all rows; may be called again after an error."""
        return [f for i in self._indexes.values() for f in i.write(version=self._version, storage=storage, ids=ids)]

    def drop(self, partitions: Iterable[int]) -> bool:
        """Forget these partitions' rows; False when they can't be told from the others'."""
        if not self._by_partition:
            return False
        for partition in partitions:
            if partition in self._indexes:
                self._indexes.pop(partition).close()
        return True

    def clear(self) -> None:
        """Forget all rows."""
        for index in self._indexes.values():
            index.clear()

    def close(self) -> None:
        """Close every index, for good."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()
