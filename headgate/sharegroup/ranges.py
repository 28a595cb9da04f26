"""Offsets that are settled, as ranges: ``[from, to)``, sorted, apart from each other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

Range = tuple[int, int]  # half-open


def runs(offsets: Sequence[int]) -> list[Range]:
    """The ranges that hold exactly these offsets, in whatever order they come."""
    if not len(offsets):
        return []
    known = np.unique(np.asarray(offsets, dtype=np.int64))
    ends = np.flatnonzero(np.diff(known) != 1)
    firsts = known[np.concatenate([[0], ends + 1])]
    lasts = known[np.concatenate([ends, [len(known) - 1]])]
    return list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))


class RangeSet:
    """A set of offsets that grows mostly at its end."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def __len__(self) -> int:
        return len(self._starts)

    def ranges(self) -> list[Range]:
        """All of it, in order."""
        return list(zip(self._starts, self._ends, strict=True))

    @property
    def last(self) -> int:
        """The end of the highest; 0 when it is empty."""
        return self._ends[-1] if self._ends else 0

    def add(self, start: int, end: int) -> None:
        """Ranges that touch become one."""
        left = bisect_left(self._ends, start)
        right = bisect_right(self._starts, end)
        if left < right:
            start, end = min(start, self._starts[left]), max(end, self._ends[right - 1])
        self._starts[left:right] = [start]
        self._ends[left:right] = [end]

    def overlap(self, start: int, end: int) -> list[Range]:
        """What of a range is in the set."""
        left = bisect_right(self._ends, start)
        right = bisect_left(self._starts, end)
        return [(max(start, self._starts[i]), min(end, self._ends[i])) for i in range(left, right)]

    def forget_below(self, offset: int, keep: int) -> None:
        """Drop whole ranges that end at or before ``offset``, the lowest first, until only ``keep`` are left."""
        many = min(len(self._starts) - keep, bisect_right(self._ends, offset))
        if many > 0:
            del self._starts[:many], self._ends[:many]
