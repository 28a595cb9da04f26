"""Where chunks go as soon as they are read, while nobody knows yet how many rows an interval has. Pure.

An interval's chunks are in some lanes, which other intervals may have too, and whoever writes gets whole lanes: so what
was read goes through Spark's shuffle once, and as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingestion.batch.bins import target_rows
from ingestion.batch.reading import IntervalMs

_GROUPS = 120  # so many intervals in a row have no lane together
_MIN_SLICES, _MAX_SLICES = 16, 256
_SLICES_A_WRITER = 4


@dataclass(frozen=True)
class ShufflePartitions:
    """Numbered from 0. The last one is for reports about the input."""

    slices: int  # lanes of an interval, which follow each other: among so many writers it can be divided at most

    @classmethod
    def of(cls, writers: int) -> ShufflePartitions:
        """``writers``: how many write side by side."""
        return cls(min(_MAX_SLICES, max(_MIN_SLICES, _SLICES_A_WRITER * writers)))

    @property
    def count(self) -> int:
        return self.report_partition + 1

    @property
    def report_partition(self) -> int:
        return _GROUPS * self.slices

    def lane_of(self, interval: IntervalMs, split: int, number: int) -> int:
        """Where a chunk goes: the same for each attempt to make it."""
        return _group_number(interval) * self.slices + zlib.crc32(b"%d %d" % (split, number)) % self.slices

    def shares(self, rows: Mapping[IntervalMs, int], most_rows: int, writers: int) -> list[list[int]]:
        """Which lanes one Spark task reads, each: all of an interval's, unless that has more than ``most_rows``.

        ``rows``: how many each interval has.
        """
        target = target_rows(sum(rows.values()), most_rows, writers)
        shares: list[list[int]] = []
        share_rows = 0
        for group, total, most in _groups(rows):
            share_count = min(self.slices, -(-most // most_rows))
            if not share_rows or share_count > 1 or share_rows + total > target:
                shares += [[] for _ in range(share_count)]
                share_rows = 0
            share_rows += total if share_count == 1 else 0
            for number in range(self.slices):
                shares[number * share_count // self.slices - share_count].append(group * self.slices + number)
        return shares


def _group_number(place: IntervalMs) -> int:
    """Intervals in a row have different ones."""
    start, end = place
    return start // max(1, end - start) % _GROUPS


def _groups(rows: Mapping[IntervalMs, int]) -> Iterator[tuple[int, int, int]]:
    """Those that have rows, in order: how many, and how many of one interval at most."""
    rows_by_group: dict[int, list[int]] = {}
    for interval, row_count in rows.items():
        rows_by_group.setdefault(_group_number(interval), []).append(row_count)
    for group in sorted(rows_by_group):
        yield group, sum(rows_by_group[group]), max(rows_by_group[group])
