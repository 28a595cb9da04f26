"""What became of each part of a topic's partitions: a few hundred cells for any number of offsets.

From the settled ranges (what has ended), the receipts (how), and what the indexers say they hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from controlplane.publishing.models import ProgressKey
from controlplane.publishing.postgres_ranges import Ranges, span
from controlplane.publishing.settled import settled_ranges
from controlplane.sources.models import Source
from ingestion.specs import offsets

CELLS = 200
MAX_PARTITIONS = 64
MAX_HOLES = 50
# Receipts that are looked at, the newest of each partition: what older ones ended is shown as settled.
MAX_RECEIPTS = 40_000
# Every offset of a partition ends (or waits) in one of these ways; duplicates are deliveries beside them.
STATES = (
    "stored",
    "thrown_away",
    "unparseable",
    "empty",
    "gap",
    "skipped",
    "settled",
    "in_flight",
    "hole",
    "waiting",
)

_RECEIPTS = """
    WITH newest AS (
        SELECT outcomes, replay FROM publishing_receipt WHERE key_id = %(key)s AND hull && %(hull)s
        ORDER BY created_at DESC LIMIT %(most)s
    )
    SELECT o.key, newest.replay, cell,
           sum(least(r.high, %(low)s + (cell + 1) * %(width)s) - greatest(r.low, %(low)s + cell * %(width)s))::int8
    FROM newest, jsonb_each(newest.outcomes) o, jsonb_array_elements(o.value) x,
        LATERAL (SELECT greatest((x->>0)::int8, %(low)s) AS low, least((x->>1)::int8, %(high)s) AS high) r,
        LATERAL generate_series((r.low - %(low)s) / %(width)s, (r.high - 1 - %(low)s) / %(width)s) AS cell
    WHERE r.low < r.high AND o.key <> 'further' GROUP BY 1, 2, 3
"""
Cells = dict[str, list[int]]
Hull = tuple[int, int, int]  # partition, start, end
ReceiptRow = tuple[str, bool, int, int]  # outcome, whether of a replay, cell, offsets


@dataclass(frozen=True)
class PartitionCoverage:
    """One partition's offsets ``[start, end)`` in cells of ``width`` offsets each."""

    partition: int
    start: int
    end: int
    width: int
    cells: Cells  # state (and ``duplicate``) → offsets in each cell
    holes: Ranges  # unsettled offsets below a settled one that nobody holds, the first ones
    complete: bool  # whether all receipts were looked at

    @property
    def totals(self) -> dict[str, int]:
        """Offsets by state, those that there are."""
        return {name: sum(counts) for name, counts in self.cells.items() if any(counts)}


def coverage(source: Source, in_flight: Iterable[Hull] = ()) -> list[PartitionCoverage]:
    """Every partition of a source that something is known of, up to 64. ``in_flight``: what indexers work on."""
    hulls: dict[int, Ranges] = {}
    for partition, start, end in in_flight:
        hulls.setdefault(partition, []).append((start, end))
    keys = list(source.keys.order_by("partition")[:MAX_PARTITIONS])
    most = MAX_RECEIPTS // max(1, len(keys))
    partitions = (_partition_coverage(key, offsets.merged(hulls.get(key.partition, [])), most) for key in keys)
    return [partition for partition in partitions if partition is not None]


def _partition_coverage(key: ProgressKey, in_flight: Ranges, most: int) -> PartitionCoverage | None:
    settled = settled_ranges(key)
    bounds = _bounds(key, settled, in_flight)
    if bounds is None:
        return None
    start, end = bounds
    width = -(-(end - start) // CELLS)
    unsettled = offsets.subtracted([bounds], settled)
    highest = settled[-1][1] if settled else start
    free = offsets.subtracted(unsettled, in_flight)
    holes = [(low, high) for low, high in free if high <= highest]
    cells, complete = _ended_cells(_receipt_cells(key, bounds, width, most), count_by_cell(settled, start, width))
    cells["in_flight"] = count_by_cell(offsets.subtracted(unsettled, free), start, width)
    cells["hole"] = count_by_cell(holes, start, width)
    cells["waiting"] = count_by_cell(offsets.subtracted(free, holes), start, width)
    return PartitionCoverage(key.partition, start, end, width, cells, holes[:MAX_HOLES], complete)


def _bounds(key: ProgressKey, settled: Ranges, in_flight: Ranges) -> offsets.Range | None:
    """From the first offset that the reader was given to the log's end, as far as it is known; None for nothing."""
    ranges = [*settled[:1], *settled[-1:], *in_flight]
    starts = [r[0] for r in ranges] or [key.log_start_offset or 0]
    ends = [r[1] for r in ranges] + ([key.end_offset] if key.end_offset is not None else [])
    return (min(starts), max(ends)) if ends and max(ends) > min(starts) else None


def _ended_cells(rows: Iterable[ReceiptRow], all_settled: list[int]) -> tuple[Cells, bool]:
    """What is settled by how it ended; what no receipt explains is ``settled``. And whether there is none of that."""
    cells = cells_from_receipts(rows)
    explained = [sum(cells[s][n] for s in STATES if s in cells) for n in range(CELLS)]
    cells["settled"] = [max(0, here - accounted) for here, accounted in zip(all_settled, explained, strict=True)]
    return cells, not any(cells["settled"])


def _receipt_cells(key: ProgressKey, bounds: offsets.Range, width: int, most: int) -> list[ReceiptRow]:
    low, high = bounds
    values = {
        "key": key.pk,
        "hull": span(key.pk, low, high),
        "most": most,
        "low": low,
        "high": high,
        "width": width,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECEIPTS, values)
        return list(cursor.fetchall())


def cells_from_receipts(rows: Iterable[ReceiptRow]) -> Cells:
    """Offsets by outcome and cell.

    What a replay stored or threw away had been unparseable before; what it could not read still is.
    """
    cells: Cells = {name: [0] * CELLS for name in (*STATES[:6], "duplicate")}
    for outcome, replay, cell, count in rows:
        if not replay:
            cells[outcome][cell] += count
        elif outcome != "unparseable":
            cells[outcome][cell] += count
            cells["unparseable"][cell] -= count
    return {name: [max(0, n) for n in counts] for name, counts in cells.items()}


def count_by_cell(ranges: Iterable[offsets.Range], start: int, width: int) -> list[int]:
    """How many offsets of the ranges lie in each cell."""
    cells = [0] * CELLS
    for low, high in ranges:
        first, last = (low - start) // width, (high - 1 - start) // width
        if first == last:
            cells[first] += high - low
            continue
        cells[first] += start + (first + 1) * width - low
        cells[last] += high - (start + last * width)
        for cell in range(first + 1, last):
            cells[cell] += width
    return cells
