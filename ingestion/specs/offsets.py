"""Half-open offset ranges ``[start, end)``: made from offsets, merged, subtracted, counted."""

from __future__ import annotations

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
    return [piece for r in merged(ranges) for piece in _without(r, cuts)]


def _without(piece: Range, cuts: list[Range]) -> Iterator[Range]:
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
