"""Until when a source is complete: what a look at its topic proves, whatever the records' own timestamps say.

A look begins at a time and then sees where each partition's log ends: all that Kafka held at that time lies below.
Once all these offsets are settled, the source is complete until then. So each look leaves a mark, and a mark is passed
when no unsettled offset lies below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Frontier = Mapping[int, int]  # partition → its first offset that is not settled, else the end of what may be read

# A record is stamped before it can be read, and clocks differ a little.
CLOCK_MARGIN = timedelta(seconds=1)
MARK_GAP = timedelta(seconds=4)  # marks that nothing has passed yet are at least this far from each other
MAX_MARKS = 60
_MAX_OFFSETS = 6_000  # in all marks of a source together


@dataclass(frozen=True)
class Mark:
    """What a look saw: all that Kafka held at ``at`` lies below ``ends``."""

    at: datetime
    end_offsets: Mapping[int, int]

    def is_passed(self, frontier: Frontier) -> bool:
        """Whether all below it is settled. A partition that is gone holds nothing."""
        return all(frontier[p] >= end for p, end in self.end_offsets.items() if p in frontier)


@dataclass(frozen=True)
class Marks:
    """Those of a source that are not passed yet, by time."""

    waiting: Sequence[Mark] = ()
    # Of partitions of which nothing is settled and the reader's beginning is not known, where the log ended when they
    # were first seen: what came after may have to be read.
    start_offsets: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Any) -> Marks:
        """What ``stored`` gave."""
        waiting = [Mark(_time(at), {int(p): end for p, end in ends.items()}) for at, ends in stored.get("waiting", [])]
        return cls(waiting, {int(p): offset for p, offset in stored.get("begins", {}).items()})

    def stored(self) -> dict[str, Any]:
        """What is kept of them, fit for JSON."""
        waiting = [[_ms(m.at), {str(p): end for p, end in m.end_offsets.items()}] for m in self.waiting]
        return {"waiting": waiting, "begins": {str(p): offset for p, offset in self.start_offsets.items()}}

    def advanced(self, mark: Mark, frontier: Frontier, unknown: Mapping[int, int]) -> tuple[datetime | None, Marks]:
        """Until when the source is complete by this look, if that is later than before; and the marks that wait then.

        ``unknown``: of partitions whose reader's beginning is not known, where the log ends.
        """
        begins = {p: self.start_offsets.get(p, end) for p, end in unknown.items()}
        proven = {p: begins.get(p, offset) for p, offset in frontier.items()}
        passed = [m for m in (*self.waiting, mark) if m.is_passed(proven)]
        waiting = [m for m in self.waiting if not m.is_passed(proven)]
        if mark not in passed and (not waiting or mark.at - waiting[-1].at >= MARK_GAP):
            waiting = thin_marks([*waiting, mark], max_marks(len(mark.end_offsets)))
        return max((m.at - CLOCK_MARGIN for m in passed), default=None), Marks(waiting, begins)


def max_marks(partitions: int) -> int:
    """How many wait at most: of a topic of many partitions fewer."""
    return max(6, min(MAX_MARKS, _MAX_OFFSETS // max(1, partitions)))


def thin_marks(marks: Sequence[Mark], most: int) -> list[Mark]:
    """At most so many, by time: the first and the last stay, and between them those that leave the smallest gaps.

    A source that lags for long then says less often how far it has come, and nothing that is wrong.
    """
    remaining = list(marks)
    while len(remaining) > max(2, most):
        spans = [(remaining[n + 1].at - remaining[n - 1].at, n) for n in range(1, len(remaining) - 1)]
        del remaining[min(spans)[1]]
    return remaining


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
