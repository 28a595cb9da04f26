"""Which writer gets which partitions of intervals: those of neighbouring small intervals together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ingestion.batch.reading import Place

_SHARES_A_WRITER = 4  # so that the last ones end together, and an interval's rows have the memory to themselves
_LEAST_ROWS = 100_000  # to write fewer takes no longer than to begin


@dataclass(frozen=True)
class Bins:
    """Numbered from 0 on; each is written by one Spark task."""

    count: int
    of: Mapping[Place, tuple[int, int]]  # interval → its first bin, and how many it has


def bins_of(rows: Mapping[Place, int], most_rows: int, writers: int, partitions: Mapping[Place, int]) -> Bins:
    """``rows``: how many each interval has. ``most_rows``: of a segment. ``partitions``: how many bins each has."""
    wanted = wanted_rows(sum(rows.values()), most_rows, writers)
    of: dict[Place, tuple[int, int]] = {}
    count = held = 0
    for place in sorted(rows):
        many = partitions[place]
        if held and (many > 1 or held + rows[place] > wanted):
            count, held = count + 1, 0
        of[place] = (count, many)
        if many > 1:
            count += many
        else:
            held += rows[place]
    return Bins(count + (1 if held else 0), of)


def wanted_rows(rows: int, most_rows: int, writers: int) -> int:
    """How many one Spark task writes of so many in all, about."""
    even = -(-rows // max(1, writers))
    return max(1, min(most_rows, max(-(-even // _SHARES_A_WRITER), min(even, _LEAST_ROWS))))
