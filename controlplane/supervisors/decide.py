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
    """One of the supervisor's tasks.

    ``running_goal``: it has been told nothing else than to run. ``ready``: it reads, or would if its predecessor did
    not. ``expired``: it has read for as long as one task is to. ``crowded_out``: there is room for it only when its
    predecessor has ended.
    """

    id: str
    spec_version: int
    active: bool
    reading: bool
    failed: bool
    running_goal: bool
    indexers_wanted: int
    created_at: datetime
    ended_at: datetime | None = None
    ready: bool = False
    expired: bool = False
    crowded_out: bool = False


@dataclass(frozen=True)
class Observed:
    """``tasks``: newest first. ``same_task``: spec versions that differ from the current one in taskCount only.

    ``scales_in_place``: a running task takes up another task count; else the next one does.
    ``longest_delay``: the most that a start waits after failures. ``not_before``: when the first task may start.
    """

    now: datetime
    suspended: bool
    terminated: bool
    version: int
    task_count: int
    tasks: list[SeenTask]
    same_task: frozenset[int] = frozenset()
    scales_in_place: bool = True
    longest_delay: timedelta = LONGEST_DELAY
    not_before: datetime | None = None


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
    """The supervisor's next step: one task of the current spec runs, unless suspended, terminated or backing off.

    A task of an older spec, or one that has read long enough, reads on until the next one is ready.
    """
    active = [t for t in seen.tasks if t.active]
    if seen.terminated or seen.suspended:
        return _stopped(seen, active)
    current = [t for t in active if t.running_goal]
    keep = next((t for t in current if _fits(seen, t) and not t.expired), None)
    others = [t for t in current if t is not keep]
    bridge = None if keep and (keep.ready or keep.crowded_out) else next((t for t in others if t.reading), None)
    finish = [t.id for t in others if t is not bridge]
    failures = failures_in_a_row(seen.tasks)
    if keep:
        scale = {keep.id: seen.task_count} if keep.indexers_wanted != seen.task_count else {}
        state, detail = _running_state(keep, bridge, failures)
        return Decision(state, detail, finish=finish, scale=scale, failures=failures)
    if not seen.tasks and seen.not_before is not None and seen.now < seen.not_before:
        return Decision("PENDING", "PENDING", next_start_at=seen.not_before)
    start_at = _next_start(seen, failures)
    due = start_at is None or seen.now >= start_at
    calm = "RUNNING" if failures or bridge else "PENDING"
    state = "UNHEALTHY_TASKS" if failures >= UNHEALTHY_AFTER else calm
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
    if not seen.scales_in_place and task.indexers_wanted != seen.task_count:
        return False
    return task.spec_version == seen.version or task.spec_version in seen.same_task


def _stopped(seen: Observed, active: list[SeenTask]) -> Decision:
    finish = [t.id for t in active if t.running_goal]
    if active:
        return Decision("STOPPING", "STOPPING", finish=finish)
    return Decision("SUSPENDED", "SUSPENDED") if not seen.terminated else Decision("STOPPING", "TERMINATED")


def _running_state(task: SeenTask, bridge: SeenTask | None, failures: int) -> tuple[str, str]:
    if failures >= UNHEALTHY_AFTER and not task.ready:
        return "UNHEALTHY_TASKS", "UNHEALTHY_TASKS"
    return ("RUNNING", "RUNNING") if task.ready or bridge else ("PENDING", "STARTING_TASK")


def _next_start(seen: Observed, failures: int) -> datetime | None:
    ended = [t.ended_at for t in seen.tasks if not t.active and t.ended_at is not None]
    return max(ended) + back_off(failures, seen.longest_delay) if failures and ended else None
