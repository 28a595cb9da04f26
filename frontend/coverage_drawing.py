"""A partition's coverage as a drawing: runs of cells that look alike, and the same in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from controlplane.publishing.selectors.coverage import CELLS, PartitionCoverage

# In the order in which they are named; the first that a cell has of ``_NOTABLE`` is marked in it, however few they are.
WORDS = {
    "stored": "stored",
    "thrown_away": "thrown away",
    "unparseable": "unparseable",
    "duplicate": "delivered again",
    "empty": "no record there",
    "gap": "removed before read",
    "skipped": "skipped by a reset",
    "settled": "settled, details not shown",
    "in_flight": "in flight",
    "hole": "gap, not settled",
    "waiting": "not read yet",
}
_NOTABLE = ("gap", "hole", "unparseable", "skipped", "in_flight", "thrown_away", "duplicate", "empty")
_MAIN = ("stored", "settled", "waiting", *_NOTABLE)


@dataclass(frozen=True)
class Run:
    """Cells ``[x, x + width)`` in the look of one state."""

    x: int
    width: int
    state: str
    mark: bool  # drawn over the lower part only


@dataclass(frozen=True)
class Drawing:
    """A partition's runs in a box ``CELLS`` wide, and its text."""

    partition: int
    start: int
    end: int
    width: int
    runs: list[Run]
    counts: list[tuple[str, str, int]]  # (state, words, offsets)
    holes: list[tuple[int, int]]
    complete: bool

    @property
    def text(self) -> str:
        parts = ", ".join(f"{count:,} {words}" for _, words, count in self.counts)
        return f"Partition {self.partition}, offsets {self.start:,} to {self.end - 1:,}: {parts}."


def drawing_of(coverage: PartitionCoverage) -> Drawing:
    """The look of one partition."""
    cells = coverage.cells
    main = [_main_state(cells, n) for n in range(CELLS)]
    marks = [_notable_state(cells, n, main[n]) for n in range(CELLS)]
    totals = coverage.totals
    return Drawing(
        partition=coverage.partition,
        start=coverage.start,
        end=coverage.end,
        width=coverage.width,
        runs=[*_runs(main, mark=False), *_runs(marks, mark=True)],
        counts=[(name, words, totals[name]) for name, words in WORDS.items() if totals.get(name)],
        holes=coverage.holes,
        complete=coverage.complete,
    )


def _main_state(cells: Mapping[str, list[int]], n: int) -> str:
    """What most of a cell's offsets are; nothing for a cell beyond the end."""
    main = max(_MAIN, key=lambda name: 0 if name == "duplicate" else cells[name][n])
    return main if cells[main][n] else ""


def _notable_state(cells: Mapping[str, list[int]], n: int, main: str) -> str:
    return next((name for name in _NOTABLE if name != main and cells[name][n]), "")


def _runs(states: list[str], mark: bool) -> list[Run]:
    runs, x = [], 0
    for state, group in groupby(states):
        width = len(list(group))
        if state:
            runs.append(Run(x, width, state, mark))
        x += width
    return runs
