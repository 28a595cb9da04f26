"""A sorted run of rows in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestion.rows import conform
from ingestion.segments.rollup import roll_up
from ingestion.segments.table_shape import Integers, Shape, sorted_order

_FEWEST_BLOCK_ROWS = 1024  # rows of a block, whatever they weigh
_MAX_BLOCK_ROWS = 131_072
_WIDE = 3  # blocks that reach over so much more than their rows


@dataclass(frozen=True)
class MemoryRun:
    """Rows that wait in memory for their segment."""

    rows: pa.Table
    order: Integers | None  # of the rows when they are sorted, with rollup by time alone; None if they stand so
    shape: Shape
    first_ms: int

    @classmethod
    def of(cls, rows: pa.Table, shape: Shape, came: int) -> MemoryRun:
        """Of decoded rows, one at least, that stand in the order of column 0, the records' numbers.

        ``first_record``: as of ``Shape.to_shape``.
        """
        shaped = shape.to_shape(rows, came)
        keys = [shaped.column(shape.lead)] if shape.rollup else shape.keys(shaped)
        return cls(shaped, sorted_order(keys), shape, int(shape.times(shaped).min()))

    @property
    def fields(self) -> list[pa.Field]:
        """The columns after ``__time``."""
        return list(self.rows.schema)[self.shape.lead + 1 :]

    def blocks(self, fields: Sequence[pa.Field], most_bytes: int) -> Iterator[pa.Table]:
        """All rows, in order, in tables of about so many bytes with these columns, rolled up if that is wanted."""
        size = block_rows(self.rows, most_bytes)
        for block in self._sorted(size):
            yield conform(roll_up(block, self.shape) if self.shape.rollup else block, fields, self.shape.lead + 1)

    def _sorted(self, size: int) -> Iterator[pa.Table]:
        if self.order is None:
            yield from (self.rows.slice(start, size) for start in range(0, len(self.rows), size))
            return
        parts = np.split(self.order, self._cuts(self.order, size))
        reach = [(int(part.min()), int(part.max()) + 1) for part in parts]
        rows = self.rows
        if sum(high - low for low, high in reach) > _WIDE * len(rows):
            rows = rows.combine_chunks()
        for part, (low, high) in zip(parts, reach, strict=True):
            # What comes almost in order needs no second copy of all.
            yield rows.slice(low, high - low).combine_chunks().take(pa.array(part - low))

    def _cuts(self, order: Integers, size: int) -> Integers:
        """Where blocks end. Rows of one time, which may become one row, stay together."""
        cuts = np.arange(size, len(order), size)
        if not self.shape.rollup:
            return cuts
        times = self.shape.times(self.rows)[order]
        time_ends = np.unique(np.searchsorted(times, times[cuts - 1], side="right"))
        return time_ends[time_ends < len(order)]


def block_rows(rows: pa.Table, most_bytes: int) -> int:
    """How many rows like these make so many bytes."""
    return int(np.clip(most_bytes * len(rows) // max(rows.nbytes, 1), _FEWEST_BLOCK_ROWS, _MAX_BLOCK_ROWS))
