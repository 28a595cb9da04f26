"""Half-open offset ranges ``[start, end)``: made from offsets, merged, subtracted, counted, and a set that grows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[int, int]


def ranges_of(offsets: Iterable[int]) -> list[Range]:
    """The fewest ranges that hold exactly ``offsets`` (in any order, doubles count once)."""
    ranges: list[Range] = []
    start = end = -1
    for offset in sorted(offsets):
        if offset == end:
            end += 1
        elif offset > end or start < 0:
            if start >= 0:
                ranges.append((start, end))
            start, end = offset, offset + 1
    if start >= 0:
        ranges.append((start, end))
    return ranges


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Sorted, with what touches or overlaps joined."""
    out: list[Range] = []
    for start, end in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        elif start < end:
            out.append((start, end))
    return out


def subtracted(ranges: Iterable[Range], holes: Iterable[Range]) -> list[Range]:
    """What of ``ranges`` is in none of ``holes``."""
    cuts = merged(holes)
    return [remainder for r in merged(ranges) for remainder in _subtract_cuts(r, cuts)]


def _subtract_cuts(piece: Range, cuts: list[Range]) -> Iterator[Range]:
    start, end = piece
    for low, high in cuts:
        if high <= start or low >= end:
            continue
        if low > start:
            yield (start, low)
        start = high
    if start < end:
        yield (start, end)


def count(ranges: Iterable[Range]) -> int:
    """How many offsets the ranges hold; they must not overlap."""
    return sum(end - start for start, end in ranges)


def expanded(ranges: Iterable[Range]) -> Iterator[int]:
    """Every offset of the ranges."""
    for start, end in ranges:
        yield from range(start, end)


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
