"""How long a task took for what: from the times that are recorded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.publishing.models import IndexerFence
from controlplane.tasks.models import Status, Task


@dataclass(frozen=True)
class Phase:
    """One of a task's, which follow each other without a gap."""

    name: str
    meaning: str
    start: datetime
    end: datetime | None  # None while it lasts

    def duration(self, now: datetime) -> timedelta:
        return max((self.end or now) - self.start, timedelta())


# A phase begins with its time, and lasts until the next that is known.
_PHASES = (
    ("waiting", "Until enough slots were free and a worker launched it."),
    ("launching", "The Spark application starts, until it requests its work."),
    ("starting", "Indexers start, until the first of them reads."),
    ("reading", "From the first poll until the first publish."),
    ("publishing", "Reading and publishing, from the first publish to the last."),
    ("ending", "From the last publish to the end: held records are released, and processes end."),
)


def phases_of(task: Task, fences: Sequence[IndexerFence]) -> list[Phase]:
    """``fences``: of its indexers. A task that ended early has no more phases than it came to."""
    begins = _phase_starts(task, fences)
    reached = [(name, meaning, at) for (name, meaning), at in zip(_PHASES, begins, strict=True) if at is not None]
    ends: list[datetime | None] = [*(at for _, _, at in reached[1:]), task.ended_at]
    return [Phase(name, meaning, at, end) for (name, meaning, at), end in zip(reached, ends, strict=True)]


def _phase_starts(task: Task, fences: Sequence[IndexerFence]) -> list[datetime | None]:
    """In the order of the phases, never one before another: clocks of two machines may differ a little."""
    first = min((f.first_publish_at for f in fences if f.first_publish_at), default=None)
    last = max((f.last_publish_at for f in fences if f.last_publish_at), default=None)
    first_read = min((f.started_at for f in fences if f.started_at), default=None)
    ended = task.status in (Status.SUCCESS, Status.FAILED)
    starts: list[datetime | None] = []
    latest = task.created_at
    for at in (task.created_at, task.launched_at, task.started_at, first_read, first, last if ended else None):
        latest = max(latest, at) if at is not None else latest
        starts.append(None if at is None else latest)
    return starts
