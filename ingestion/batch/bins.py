"""Which writer gets which partitions of intervals: those of neighbouring small intervals together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ingestion.batch.reading import IntervalMs

_SHARES_A_WRITER = 4  # so that the last ones end together, and an interval's rows have the memory to themselves
_MIN_ROWS = 100_000  # to write fewer takes no longer than to begin


@dataclass(frozen=True)
class Bins:
    """Numbered from 0 on; each is written by one Spark task."""

    count: int
    by_interval: Mapping[IntervalMs, tuple[int, int]]  # interval → its first bin, and how many it has


def plan_bins(
    rows: Mapping[IntervalMs, int], most_rows: int, writers: int, partitions: Mapping[IntervalMs, int]
) -> Bins:
    """``rows``: how many each interval has. ``most_rows``: of a segment. ``partitions``: how many bins each has."""
    target = target_rows(sum(rows.values()), most_rows, writers)
    bins_by_interval: dict[IntervalMs, tuple[int, int]] = {}
    count = bin_rows = 0
    for place in sorted(rows):
        partition_count = partitions[place]
        if bin_rows and (partition_count > 1 or bin_rows + rows[place] > target):
            count, bin_rows = count + 1, 0
        bins_by_interval[place] = (count, partition_count)
        if partition_count > 1:
            count += partition_count
        else:
            bin_rows += rows[place]
    return Bins(count + (1 if bin_rows else 0), bins_by_interval)


def target_rows(rows: int, most_rows: int, writers: int) -> int:
    """About how many of the rows one Spark task writes."""
    even = -(-rows // max(1, writers))
    return max(1, min(most_rows, max(-(-even // _SHARES_A_WRITER), min(even, _MIN_ROWS))))
