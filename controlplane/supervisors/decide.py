"""What a supervisor does next: a pure function of what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=60)
HEALTHY_AFTER = timedelta(seconds=60)  # a task that ran this long was no failed start
UNHEALTHY_AFTER = 3


@dataclass(frozen=True)
class SeenTask:
    """One of the supervisor's tasks. ``running_goal``: it has been told nothing else than to run."""

    id: str
    spec_version: int
    active: bool
    reading: bool
    failed: bool
    running_goal: bool
    indexers_wanted: int
    created_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True)
class Observed:
    """``tasks``: newest first. ``same_task``: spec versions that differ from the current one in taskCount only.

    ``longest_delay``: the most that a start waits after failures.
    """

    now: datetime
    suspended: bool
    terminated: bool
    version: int
    task_count: int
    tasks: list[SeenTask]
    same_task: frozenset[int] = frozenset()
    longest_delay: timedelta = LONGEST_DELAY


@dataclass(frozen=True)
class Decision:
    """What to do. ``scale``: task id → indexers."""

    state: str
    detailed_state: str
    start: bool = False
    finish: list[str] = field(default_factory=list)
    scale: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    next_start_at: datetime | None = None


def decide(seen: Observed) -> Decision:
    """The supervisor's next step: one task of the current spec runs, unless suspended, terminated or backing off."""
    active = [t for t in seen.tasks if t.active]
    if seen.terminated or seen.suspended:
        return _stopped(seen, active)
    fitting = [t for t in active if t.running_goal and _fits(seen, t)]
    keep = fitting[:1]
    finish = [t.id for t in active if t.running_goal and t not in keep]
    failures = failures_in_a_row(seen.tasks)
    if keep:
        scale = {t.id: seen.task_count for t in keep if t.indexers_wanted != seen.task_count}
        state, detail = _running_state(keep[0], failures)
        return Decision(state, detail, finish=finish, scale=scale, failures=failures)
    start_at = _next_start(seen, failures)
    due = start_at is None or seen.now >= start_at
    state = "UNHEALTHY_TASKS" if failures >= UNHEALTHY_AFTER else "PENDING" if not failures else "RUNNING"
    detail = "CREATING_TASKS" if due else "UNHEALTHY_TASKS" if failures >= UNHEALTHY_AFTER else "BACKING_OFF"
    return Decision(state, detail, start=due, finish=finish, failures=failures, next_start_at=None if due else start_at)


def failures_in_a_row(tasks: list[SeenTask]) -> int:
    """How many of the newest ended tasks failed one after the other; one that ran well begins the count anew."""
    count = 0
    for task in (t for t in tasks if not t.active):
        if not task.failed:
            break
        count += 1
        if task.ended_at is not None and task.ended_at - task.created_at > HEALTHY_AFTER:
            break
    return count


def back_off(failures: int, longest: timedelta = LONGEST_DELAY) -> timedelta:
    """1, 2, 4 … seconds after the first, second, third … failure in a row, and no more than ``longest``."""
    return min(longest, FIRST_DELAY * 2 ** min(max(0, failures - 1), 20))


def _fits(seen: Observed, task: SeenTask) -> bool:
    return task.spec_version == seen.version or task.spec_version in seen.same_task


def _stopped(seen: Observed, active: list[SeenTask]) -> Decision:
    finish = [t.id for t in active if t.running_goal]
    if active:
        return Decision("STOPPING", "STOPPING", finish=finish)
    return Decision("SUSPENDED", "SUSPENDED") if not seen.terminated else Decision("STOPPING", "TERMINATED")


def _running_state(task: SeenTask, failures: int) -> tuple[str, str]:
    if failures >= UNHEALTHY_AFTER and not task.reading:
        return "UNHEALTHY_TASKS", "UNHEALTHY_TASKS"
    return ("RUNNING", "RUNNING") if task.reading else ("PENDING", "STARTING_TASK")


def _next_start(seen: Observed, failures: int) -> datetime | None:
    ended = [t.ended_at for t in seen.tasks if not t.active and t.ended_at is not None]
    return max(ended) + back_off(failures, seen.longest_delay) if failures and ended else None
