"""What a supervisor does next: a pure function of what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=60)
_NO_ROOM = {"slot": "WAITING_FOR_SLOT", "capacity": "WAITING_FOR_CAPACITY"}
_REFUSED, _SHARED = "KAFKA_REFUSES", "STRANGERS_IN_GROUP"
_UNHEALTHY_TASKS = {*_NO_ROOM.values(), _REFUSED, _SHARED}
_OWN_STATES = ("PENDING", "IDLE")  # details that are states, too
HEALTHY_AFTER = timedelta(seconds=60)  # a task that ran this long was no failed start
CALM_FOR = timedelta(seconds=10)  # so long a supervisor whose tasks all read is left alone, unless one of them changes


@dataclass(frozen=True)
class SeenTask:
    """One of the supervisor's tasks."""

    id: str
    spec_version: int
    active: bool
    reading: bool
    failed: bool
    running_goal: bool  # it has been told nothing else than to run
    indexers_wanted: int
    created_at: datetime
    ended_at: datetime | None = None
    ready: bool = False  # it reads, or would if its predecessor did not
    expired: bool = False  # it, or the first of its group, has read for as long as one task is to, or is to hand off
    expires_at: datetime | None = None  # when it will have; None: never, or it does not read yet
    to_hand_off: bool = False  # it is expired because somebody asked for that
    crowded_out: bool = False  # there is room for it only when its predecessor has ended
    group: str = ""  # that of its replicas; empty for a task that has none
    refused: bool = False  # Kafka does not let all its indexers read
    shared: bool = False  # others read partitions in its consumer group
    well: bool = False  # it has read for ``HEALTHY_AFTER``
    lacks: str = ""  # what it has had to wait for so long that somebody should know, "slot" or "capacity"
    published: bool = False  # it has registered something
    begun: bool = False  # an indexer of it has begun to read


@dataclass(frozen=True)
class LastGood:
    """An older version of the spec, in force as long as no task of the current one has begun to read."""

    version: int
    replicas: int


@dataclass(frozen=True)
class Runs:
    """The iterations that ask Kafka: how many in a row failed, or went well."""

    failed: int = 0
    good: int = 0
    stream_failed: bool = False  # the last failure was Kafka's, or on the way there
    connected: bool = False  # one has reached Kafka since the supervisor began


@dataclass(frozen=True)
class Thresholds:
    """How many iterations or tasks in a row make a supervisor unhealthy, and healthy again: ``druid.supervisor.*``."""

    unhealthiness: int = 3
    healthiness: int = 3
    task_unhealthiness: int = 3
    task_healthiness: int = 1


@dataclass(frozen=True)
class Observed:
    """What a supervisor's round has seen; ``decide`` looks at nothing else."""

    now: datetime
    suspended: bool
    terminated: bool
    version: int
    task_count: int
    tasks: list[SeenTask]  # newest first
    replicas: int = 1
    same_task: frozenset[int] = frozenset()  # spec versions that differ from the current one in taskCount only
    scales_in_place: bool = True  # a running task takes up another task count; else the next one does
    longest_delay: timedelta = LONGEST_DELAY  # the most that a start waits after failures
    not_before: datetime | None = None  # when the first task may start
    runs: Runs = Runs()
    thresholds: Thresholds = Thresholds()
    before: tuple[str, str] = ("PENDING", "PENDING")  # the state and detailed state so far
    steady: bool = False  # it has been RUNNING since it began
    used_up: bool = False  # a quota of its team's: nothing may read
    in_force: int | None = None  # the version whose tasks were the last to begin to read, as of the round before
    last_good: LastGood | None = None  # if that is another version, which asks for other work
    idle: bool = False  # nothing has come for long, and all is settled
    held_back: bool = False  # its spec had a pattern of topics, and what read these has not ended yet


@dataclass(frozen=True)
class Decision:
    """What to do."""

    state: str
    detailed_state: str
    start: int = 0  # how many tasks
    group: str = ""  # the replica group that they join; empty: a new one
    restart: int = 0  # how many tasks of the last good version
    restart_group: str = ""  # the replica group that these join
    finish: list[str] = field(default_factory=list)
    scale: dict[str, int] = field(default_factory=dict)  # task id → indexers
    failures: int = 0
    next_start_at: datetime | None = None
    in_force: int | None = None  # see ``Observed``


def decide(seen: Observed) -> Decision:
    """The supervisor's next step: as many tasks of the current spec run as it has replicas, unless it is suspended,
    terminated, backing off, or has not reached Kafka.

    Tasks of an older spec, or that have read long enough, read on until one of the next is ready. While the current
    spec does not start, those of the last good one are started again when they die.
    """
    seen = _with_begun(seen)
    active = [t for t in seen.tasks if t.active]
    if seen.terminated or seen.suspended:
        return _stopped(seen, active)
    if seen.used_up:
        return _without_quota(seen, active)
    if seen.idle and seen.last_good is None and not failures_in_a_row(seen.tasks):
        return _idle(seen, active)
    current = [t for t in active if t.running_goal]
    keep = _kept(seen, current)
    others = [t for t in current if t not in keep]
    up = any(t.ready or t.crowded_out for t in keep)
    bridge = [] if up else _bridge(seen, others)
    mine = _own(seen)
    plan = _starts(seen, keep, mine)
    restart, group = (0, "") if up else _restarts(seen, mine, bridge)
    plan = replace(
        plan,
        detailed_state=plan.detailed_state or _detail(seen, active, keep, bridge),
        restart=restart,
        restart_group=group,
        finish=[t.id for t in others if t not in bridge],
        scale={t.id: seen.task_count for t in keep if t.indexers_wanted != seen.task_count},
        in_force=seen.in_force,
    )
    state, detail = _health(seen, plan, mine)
    return replace(plan, state=state, detailed_state=detail)


def _with_begun(seen: Observed) -> Observed:
    """The current version is in force once a task of it has begun, whatever becomes of that."""
    if any(t.begun and _is_current(seen, t) for t in seen.tasks):
        return replace(seen, in_force=seen.version, last_good=None)
    return seen


def _is_current(seen: Observed, task: SeenTask) -> bool:
    return task.spec_version == seen.version or task.spec_version in seen.same_task


def _own(seen: Observed) -> list[SeenTask]:
    """The tasks that tell how the current version does: the last good one's, which go on beside it, do not."""
    return seen.tasks if seen.last_good is None else [t for t in seen.tasks if _is_current(seen, t)]


def _without_quota(seen: Observed, active: list[SeenTask]) -> Decision:
    """What reads publishes what it holds, and ends; what is not up yet is told so when it is, or waits."""
    finish = [t.id for t in active if t.running_goal and (t.reading or t.ready or t.refused)]
    return Decision("UNHEALTHY_TASKS", "QUOTA_USED_UP", finish=finish, in_force=seen.in_force)


def _idle(seen: Observed, active: list[SeenTask]) -> Decision:
    """What reads publishes what it holds, and ends. One whose last task failed, or whose current spec has not begun to
    read, is not at rest: it goes on trying.
    """
    plan = Decision("", "IDLE", finish=[t.id for t in active if t.running_goal], in_force=seen.in_force)
    state, detail = _health(seen, plan, seen.tasks)
    return replace(plan, state=state, detailed_state=detail)


def calm_until(seen: Observed, decision: Decision) -> datetime | None:
    """Until when the next rounds would decide as this one did, as long as no task of it changes; None: they may differ.

    So it is while all tasks that there are to be, and no others, read by the current spec, and none has failed lately;
    and while it is idle, and its tasks have ended.
    """
    active = [t for t in seen.tasks if t.active]
    if seen.used_up or decision.detailed_state == "IDLE":
        return None if active else seen.now + CALM_FOR
    all_read = all(t.ready and t.running_goal and t.spec_version == seen.version and not t.expired for t in active)
    does_nothing = not (decision.start or decision.restart or decision.finish or decision.scale or decision.failures)
    if not (all_read and does_nothing and len(active) == seen.replicas and decision.detailed_state == "RUNNING"):
        return None
    return min([seen.now + CALM_FOR, *(t.expires_at for t in active if t.expires_at is not None)])


def failures_in_a_row(tasks: list[SeenTask]) -> int:
    """How many of the newest ended tasks failed one after the other; one that ran well begins the count anew."""
    count = 0
    for task in (t for t in tasks if not t.active or t.well):
        if not task.failed:
            break
        count += 1
        if task.ended_at is not None and task.ended_at - task.created_at > HEALTHY_AFTER:
            break
    return count


def failed_starts(tasks: list[SeenTask]) -> int:
    """Failures in a row since a task last published: that one had started well, whatever ended it."""
    failures = failures_in_a_row(tasks)
    newest = [t for t in tasks if not t.active or t.well][:failures]
    return next((count for count, task in enumerate(newest, 1) if task.published), failures)


def back_off(failures: int, longest: timedelta = LONGEST_DELAY) -> timedelta:
    """1, 2, 4 … seconds after the first, second, third … failure in a row, and no more than ``longest``."""
    return min(longest, FIRST_DELAY * 2 ** min(max(0, failures - 1), 20))


def unhealthy(runs: Runs, thresholds: Thresholds) -> str:
    """The detailed state that so many failed iterations make; empty when they are too few."""
    if runs.failed < thresholds.unhealthiness:
        return ""
    if not runs.stream_failed:
        return "UNHEALTHY_SUPERVISOR"
    return "LOST_CONTACT_WITH_STREAM" if runs.connected else "UNABLE_TO_CONNECT_TO_STREAM"


def _kept(seen: Observed, current: list[SeenTask]) -> list[SeenTask]:
    """The newest replica group that fits, those that are up first, and no more than there are to be."""
    group = next((_group(t) for t in current if _fits(seen, t) and not t.expired), None)
    mine = [t for t in current if _group(t) == group]
    return sorted(mine, key=lambda t: not t.ready)[: seen.replicas]


def _bridge(seen: Observed, others: list[SeenTask]) -> list[SeenTask]:
    """Who reads until the next task is up: the newest group that does; else the last good version's, on its way; else
    one that Kafka refuses.
    """
    good = None if seen.last_good is None else seen.last_good.version
    group = next((_group(t) for t in others if t.reading), None)
    group = group or next((_group(t) for t in others if t.spec_version == good), None)
    group = group or next((_group(t) for t in others if t.refused), None)
    return [t for t in others if _group(t) == group]


def _restarts(seen: Observed, mine: list[SeenTask], bridge: list[SeenTask]) -> tuple[int, str]:
    """How many tasks of the last good version to start, and the replica group that they join."""
    good = seen.last_good
    does_not_start = seen.runs.failed or any(t.failed or t.refused for t in mine)
    if good is None or not does_not_start or any(t.spec_version != good.version for t in bridge):
        return 0, ""
    of_good = [t for t in seen.tasks if t.spec_version == good.version]
    start_at = _next_start(of_good, seen.longest_delay)
    if start_at is not None and seen.now < start_at:
        return 0, ""
    return max(0, good.replicas - len(bridge)), bridge[0].group if bridge else ""


def _group(task: SeenTask) -> str:
    return task.group or task.id


def _fits(seen: Observed, task: SeenTask) -> bool:
    if not seen.scales_in_place and task.indexers_wanted != seen.task_count:
        return False
    return _is_current(seen, task)


def _stopped(seen: Observed, active: list[SeenTask]) -> Decision:
    finish = [t.id for t in active if t.running_goal]
    if active:
        return Decision("STOPPING", "STOPPING", finish=finish, in_force=seen.in_force)
    state, detail = ("STOPPING", "TERMINATED") if seen.terminated else ("SUSPENDED", "SUSPENDED")
    return Decision(state, detail, in_force=seen.in_force)


def _starts(seen: Observed, keep: list[SeenTask], mine: list[SeenTask]) -> Decision:
    """Which tasks to start, and the detailed state if it is that none is started now."""
    plan = Decision("", "", failures=failures_in_a_row(mine))
    missing = seen.replicas - len(keep)
    if not missing:
        return plan
    if not seen.tasks and seen.not_before is not None and seen.now < seen.not_before:
        return replace(plan, detailed_state="PENDING", next_start_at=seen.not_before)
    if seen.held_back or (seen.runs.failed and not seen.runs.connected):
        return plan
    start_at = _next_start(mine, seen.longest_delay)
    if start_at is not None and seen.now < start_at:
        return replace(plan, detailed_state="BACKING_OFF", next_start_at=start_at)
    return replace(plan, start=missing, group=keep[0].group if keep else "")


def _detail(seen: Observed, active: list[SeenTask], keep: list[SeenTask], bridge: list[SeenTask]) -> str:
    """The detailed state of a supervisor whose tasks do not fail. But for RUNNING and what it has no room for, of its
    first iterations only.
    """
    lacks = [] if any(t.ready for t in keep) else [t.lacks for t in keep if t.lacks]
    if lacks:
        return _NO_ROOM[lacks[0]]
    if any(t.refused for t in keep):
        return _REFUSED
    if any(t.shared for t in keep):
        return _SHARED
    if seen.steady or bridge or any(t.ready for t in keep):
        return "RUNNING"
    if seen.runs.failed and not seen.runs.connected:
        return "CONNECTING_TO_STREAM"
    if any(not t.running_goal for t in active):
        return "DISCOVERING_INITIAL_TASKS"
    return "CREATING_TASKS"


def _health(seen: Observed, plan: Decision, mine: list[SeenTask]) -> tuple[str, str]:
    """State and detailed state. What was unhealthy stays so until enough has gone well in a row."""
    limits, (state, detail) = seen.thresholds, seen.before
    bad = unhealthy(seen.runs, limits)
    if bad:
        return "UNHEALTHY_SUPERVISOR", bad
    if plan.failures >= limits.task_unhealthiness:
        return "UNHEALTHY_TASKS", "UNHEALTHY_TASKS"
    if state == "UNHEALTHY_SUPERVISOR" and seen.runs.good < limits.healthiness:
        return state, detail
    if plan.detailed_state in _UNHEALTHY_TASKS:
        return "UNHEALTHY_TASKS", plan.detailed_state
    if detail == "UNHEALTHY_TASKS" and _successes_in_a_row(mine) < limits.task_healthiness:
        return state, detail
    return plan.detailed_state if plan.detailed_state in _OWN_STATES else "RUNNING", plan.detailed_state


def _successes_in_a_row(tasks: list[SeenTask]) -> int:
    """Of the newest tasks: ended well, or reading for long enough to call it that."""
    count = 0
    for task in (t for t in tasks if not t.active or t.well):
        if task.failed:
            break
        count += 1
    return count


def _next_start(tasks: list[SeenTask], longest: timedelta) -> datetime | None:
    """When the next one may start after these; None: at once."""
    failures = failed_starts(tasks)
    ended = [t.ended_at for t in tasks if not t.active and t.ended_at is not None]
    return max(ended) + back_off(failures, longest) if failures and ended else None
