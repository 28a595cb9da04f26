"""A supervisor's runs over time, as bars that the server draws. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.tasks.models import Status, Task
from frontend.task_names import short_name

WIDTH = 1000.0
LANE, BAR = 22, 14
MIN_WIDTH = 3.0  # of a bar, so that it can be seen
_TONES = {Status.SUCCESS: "ok", Status.RUNNING: "work", Status.PENDING: "wait", Status.FAILED: "bad"}


@dataclass(frozen=True)
class Bar:
    """One run."""

    task: Task
    tone: str
    x: float
    y: int
    width: float
    wait: float  # how much of the width it waited or was starting
    text: str


@dataclass(frozen=True)
class Drawing:
    """All of them."""

    bars: list[Bar]
    height: int
    ticks: list[datetime]  # what stands under the drawing, from its left to its right

    @property
    def summary(self) -> str:
        runs = f"{len(self.bars)} run{'' if len(self.bars) == 1 else 's'}"
        failed = sum(bar.tone == "bad" for bar in self.bars)
        return f"{runs}, {failed} of them failed" if failed else runs


def drawing_of(tasks: Sequence[Task], start: datetime, end: datetime) -> Drawing:
    """``tasks``: those between the two. Runs that do not overlap share a lane."""
    lanes: list[datetime] = []  # until when each is taken
    bars = []
    for task in sorted(tasks, key=lambda t: (t.created_at, t.pk)):
        ended = task.ended_at or end
        lane = next((n for n, until in enumerate(lanes) if until <= task.created_at), len(lanes))
        lanes[lane : lane + 1] = [ended]
        bars.append(_bar(task, ended, lane, start, end))
    quarter = (end - start) / 4
    return Drawing(bars, max(1, len(lanes)) * LANE, [start + quarter * n for n in range(5)])


def _bar(task: Task, ended: datetime, lane: int, start: datetime, end: datetime) -> Bar:
    def x_of(time: datetime) -> float:
        return round(min(max((time - start) / (end - start), 0.0), 1.0) * WIDTH, 1)

    x, until = x_of(task.created_at), x_of(ended)
    width = max(MIN_WIDTH, until - x)
    wait = max(0.0, x_of(task.started_at or ended) - x)
    tone = _TONES[Status(task.status)]
    return Bar(
        task, tone, min(x, WIDTH - width), lane * LANE + (LANE - BAR) // 2, width, min(wait, width), _bar_text(task)
    )


def _bar_text(task: Task) -> str:
    ran = (task.ended_at - task.created_at) if task.ended_at else timedelta()
    lasted = f", {int(ran.total_seconds() // 60)} min" if task.ended_at else ""
    return f"{short_name(task.pk)}: {task.status.lower()}{lasted}"
