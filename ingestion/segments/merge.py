"""Sorted runs of rows to one, a block of each in memory at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ingestion.segments.rollup import roll_up
from ingestion.segments.table_shape import Shape, flat, int64s, sorted_order

Key = tuple[Any, ...]


class Run(Protocol):
    """Rows in order, no two the same in all that orders them. ``first_ms``: the time of the first."""

    @property
    def first_ms(self) -> int: ...

    def blocks(self, fields: Sequence[pa.Field], most_bytes: int) -> Iterator[pa.Table]:
        """All of it, in tables of at most about so many bytes, with ``fields`` after ``__time``. None is empty."""
        ...


def merge_runs(runs: Sequence[Run], shape: Shape, fields: Sequence[pa.Field], block_bytes: int) -> Iterator[pa.Table]:
    """The rows of all runs in order, with rollup those that are the same made one. No table is empty.

    A run is opened when its time comes: of runs that follow each other, one or two are open at once.
    """
    waiting = sorted(runs, key=lambda run: run.first_ms, reverse=True)
    cursors: list[_Cursor] = []
    while waiting or cursors:
        if waiting and not any(c.last < _start_key(waiting[-1]) for c in cursors):
            cursors.append(_Cursor(waiting.pop().blocks(fields, block_bytes), shape))
            continue
        boundary = min(c.last for c in cursors)
        # Nobody has rows up to here that are not in a block: no run has two that are the same.
        parts = [part for c in cursors if len(part := c.take_until(boundary))]
        yield parts[0] if len(parts) == 1 else merge_tables(parts, shape)
        cursors = [c for c in cursors if not c.done]


def _start_key(run: Run) -> Key:
    """Comes before every row of that time."""
    return (_sort_rank(run.first_ms),)


def merge_tables(parts: list[pa.Table], shape: Shape) -> pa.Table:
    """Rows in any order to one sorted table, with rollup those that are the same made one."""
    rows = pa.concat_tables(parts)
    if shape.rollup:
        return roll_up(rows, shape)
    order = sorted_order([*shape.keys(rows), rows.column(0)])
    return rows if order is None else rows.take(pa.array(order))


class _Cursor:
    """Where the merge stands in a run."""

    def __init__(self, blocks: Iterator[pa.Table], shape: Shape) -> None:
        self._blocks = blocks
        self._shape = shape
        self.done = False
        self.last: Key = ()
        self._start = 0
        self._advance()

    def take_until(self, boundary: Key) -> pa.Table:
        """The rows of this block up to the boundary, which are not given again."""
        end = self._end(boundary) if boundary < self.last else len(self._block)
        part = self._block.slice(self._start, end - self._start)
        self._start = end
        if end == len(self._block):
            self._advance()
        return part

    def _end(self, boundary: Key) -> int:
        """Behind the last row that comes not after it. Only rows of its own time are looked at one by one."""
        ms = boundary[0][1]
        first, after = (int(np.searchsorted(self._ms, ms, side=side)) for side in ("left", "right"))
        return bisect_right(range(after), boundary, lo=max(self._start, first), key=self._key)

    def _advance(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            self.done = True
            return
        self._block, self._start = block, 0
        keys = self._shape.keys(block)
        self._keys = [flat(k) for k in (keys if self._shape.rollup else [*keys, block.column(0)])]
        self._keys[0] = self._keys[0].cast(pa.int64())
        self._ms = int64s(self._keys[0])
        self.last = self._key(len(block) - 1)

    def _key(self, row: int) -> Key:
        return tuple(_sort_rank(column[row].as_py()) for column in self._keys)


def _sort_rank(value: Any) -> tuple[int, Any]:
    """What sorts as Arrow does: NaN after the numbers, null after all."""
    if value is None:
        return (2, 0)
    return (1, 0) if value != value else (0, value)
