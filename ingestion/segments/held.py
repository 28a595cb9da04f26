"""A sorted run of rows in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestion.rows import conformed
from ingestion.segments.rollup import rolled_up
from ingestion.segments.shape import Integers, Shape, sorted_order

_FEWEST = 1024  # rows of a block, whatever they weigh
_MOST = 131_072
_WIDE = 3  # blocks that reach over so much more than their rows


@dataclass(frozen=True)
class HeldRun:
    """Rows that wait in memory for their segment."""

    rows: pa.Table
    order: Integers | None  # of the rows when they are sorted, with rollup by time alone; None if they stand so
    shape: Shape
    first_ms: int

    @classmethod
    def of(cls, rows: pa.Table, shape: Shape, came: int) -> HeldRun:
        """Of decoded rows, one at least, that stand in the order of column 0, the records' numbers.

        ``came``: as of ``Shape.taken_in``.
        """
        taken = shape.taken_in(rows, came)
        keys = [taken.column(shape.lead)] if shape.rollup else shape.keys(taken)
        return cls(taken, sorted_order(keys), shape, int(shape.times(taken).min()))

    @property
    def fields(self) -> list[pa.Field]:
        """The columns after ``__time``."""
        return list(self.rows.schema)[self.shape.lead + 1 :]

    def blocks(self, fields: Sequence[pa.Field], most_bytes: int) -> Iterator[pa.Table]:
        """All rows, in order, in tables of about so many bytes with these columns, rolled up if that is wanted."""
        size = block_rows(self.rows, most_bytes)
        for block in self._sorted(size):
            yield conformed(rolled_up(block, self.shape) if self.shape.rollup else block, fields, self.shape.lead + 1)

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
        moved = np.unique(np.searchsorted(times, times[cuts - 1], side="right"))
        return moved[moved < len(order)]


def block_rows(rows: pa.Table, most_bytes: int) -> int:
    """How many rows like these make so many bytes."""
    return int(np.clip(most_bytes * len(rows) // max(rows.nbytes, 1), _FEWEST, _MOST))
