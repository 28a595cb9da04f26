"""A task's phases as a bar that the server draws. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.tasks.phases import Phase

WIDTH = 1000.0
MIN_WIDTH = 6.0  # of a phase, so that it can be seen


@dataclass(frozen=True)
class PhaseBar:
    """One phase with its place in the drawing."""

    phase: Phase
    x: float
    width: float
    seconds: float

    @property
    def is_ongoing(self) -> bool:
        return self.phase.end is None


def bars_of(phases: Sequence[Phase], now: datetime) -> list[PhaseBar]:
    """Side by side, as long as they lasted."""
    seconds = [phase.duration(now).total_seconds() for phase in phases]
    spare = max(0.0, WIDTH - MIN_WIDTH * len(phases))
    total = sum(seconds) or 1.0
    bars, x = [], 0.0
    for phase, length in zip(phases, seconds, strict=True):
        width = MIN_WIDTH + spare * length / total
        bars.append(PhaseBar(phase, round(x, 1), round(width, 1), length))
        x += width
    return bars
