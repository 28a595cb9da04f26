"""A lag and a number of indexers over the same time, as paths that the server draws. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT, TOP = 1000.0, 160.0, 8.0

Series = Sequence[tuple[datetime, int]]


@dataclass(frozen=True)
class Steps:
    """Paths of one drawing."""

    lag: str
    lag_area: str
    steps: str
    actual: str  # what there really was; empty if nothing changed
    max_lag: int
    ticks: list[datetime]
    summary: str


def drawing_of(samples: Series, counts: Series, then: Series) -> Steps:
    """``samples``: (when, lag), at least one; ``counts``, ``then``: (since when, how many)."""
    start, end = samples[0][0], samples[-1][0]
    most_lag = max(lag for _, lag in samples)
    most = max(count for _, count in (*counts, *then))

    def x_of(time: datetime) -> float:
        total_s = (end - start).total_seconds() or 1.0
        return round(min(max((time - start).total_seconds() / total_s, 0), 1) * WIDTH, 1)

    def y_of(value: int, top: int) -> float:
        return round(HEIGHT - 1 - value / (top or 1) * (HEIGHT - 1 - TOP), 1)

    lag = "M" + "L".join(f"{x_of(when)},{y_of(value, most_lag)}" for when, value in samples)
    changes = len(counts) - 1
    return Steps(
        lag=lag,
        lag_area=f"{lag}L{WIDTH},{HEIGHT}L0,{HEIGHT}Z",
        steps=_steps([(x_of(when), y_of(count, most)) for when, count in counts]),
        actual=_steps([(x_of(when), y_of(count, most)) for when, count in then]),
        max_lag=most_lag,
        ticks=[start + (end - start) / 4 * n for n in range(5)],
        summary=f"{changes} scale action{'' if changes == 1 else 's'}, from {counts[0][1]} to {counts[-1][1]} "
        f"indexers, at most {max(count for _, count in counts)}.",
    )


def _steps(points: Sequence[tuple[float, float]]) -> str:
    if not points:
        return ""
    (x, y), *rest = points
    return f"M{x},{y}" + "".join(f"H{right}V{above}" for right, above in rest) + f"H{WIDTH}"
