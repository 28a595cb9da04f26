"""A micro-batch as tasks: files cut by rows, so that each task has as many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.sharegroup.buffer_store import BufferFile

FEWEST = 200  # rows that are worth a task


@dataclass(frozen=True)
class Slice:
    """Rows ``first`` … ``end - 1`` of a file."""

    name: str
    first: int
    end: int


def slices(files: Sequence[BufferFile], tasks: int) -> list[list[Slice]]:
    """At most ``tasks`` lists, in order, none empty."""
    rows = sum(f.rows for f in files)
    if not rows:
        return []
    count = max(1, min(tasks, rows // FEWEST))
    bounds = [rows * n // count for n in range(count + 1)]
    task_slices: list[list[Slice]] = [[] for _ in range(count)]
    row, task = 0, 0
    for file in files:
        first = 0
        while first < file.rows:
            if row == bounds[task + 1]:
                task += 1
            take = min(file.rows - first, bounds[task + 1] - row)
            task_slices[task].append(Slice(file.name, first, first + take))
            first, row = first + take, row + take
    return task_slices
