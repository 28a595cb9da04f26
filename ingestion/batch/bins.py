"""Which writer gets which rows: neighbouring small intervals together, a large one to several. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ingestion.batch.reading import Place


@dataclass(frozen=True)
class Bins:
    """Numbered from 0 on; each is written by one Spark task."""

    count: int
    of: Mapping[Place, tuple[int, int]]  # interval → its first bin, and how many it has

    def bin_of(self, place: Place, split: int, number: int) -> int:
        """Where a chunk goes: the same for each attempt to make it."""
        first, many = self.of[place]
        return first + (split * 31 + number) % many


def bins_of(
    rows: Mapping[Place, int], most_rows: int, writers: int, partitions: Mapping[Place, int] | None = None
) -> Bins:
    """``rows``: how many each interval has. ``most_rows``: of a segment.

    ``partitions``: how many bins each interval has, where that does not follow from its rows.
    """
    wanted = max(1, min(most_rows, -(-sum(rows.values()) // max(1, writers))))
    of: dict[Place, tuple[int, int]] = {}
    count = held = 0
    for place in sorted(rows):
        many = partitions[place] if partitions is not None else -(-rows[place] // most_rows)
        if held and (many > 1 or held + rows[place] > wanted):
            count, held = count + 1, 0
        of[place] = (count, many)
        if many > 1:
            count += many
        else:
            held += rows[place]
    return Bins(count + (1 if held else 0), of)
