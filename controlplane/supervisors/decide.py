"""What a supervisor does next: a pure function of what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from controlplane.supervisors.states import Detail, State

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=60)
_WAITING_STATES = {"slot": Detail.WAITING_FOR_SLOT, "capacity": Detail.WAITING_FOR_CAPACITY}
HEALTHY_AFTER = timedelta(seconds=60)  # a task that ran this long was no failed start
CALM_FOR = timedelta(seconds=10)  # so long a supervisor whose tasks all read is left alone, unless one of them changes


@dataclass(frozen=True)
class TaskSnapshot:
    """One of the supervisor's tasks."""

    id: str
    spec_version: int
    active: bool
    reading: bool
    failed: bool
    goal_is_run: bool  # it has been told nothing else than to run
    indexers_wanted: int
    created_at: datetime
    ended_at: datetime | None = None
    ready: bool = False  # it reads, or would if its predecessor did not
    expired: bool = False  # it, or the first of its group, has read for as long as one task is to, or is to hand off
    expires_at: datetime | None = None  # when it will have; None: never, or it does not read yet
    to_hand_off: bool = False  # it is expired because somebody asked for that
    waits_for_predecessor: bool = False  # there is room for it only when its predecessor has ended
    group: str = ""  # that of its replicas; empty for a task that has none
    refused: bool = False  # Kafka does not let all its indexers read
    shared: bool = False  # others read partitions in its consumer group
    healthy: bool = False  # it has read for ``HEALTHY_AFTER``
    waits_for: str = ""  # what it has had to wait for so long that somebody should know, "slot" or "capacity"
    published: bool = False  # it has registered something
    has_begun_reading: bool = False  # an indexer of it has begun to read


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
class Observation:
    """What a supervisor's round has seen; ``decide`` looks at nothing else."""

    now: datetime
    suspended: bool
    terminated: bool
    version: int
    task_count: int
    tasks: list[TaskSnapshot]  # newest first
    replicas: int = 1
    same_work_versions: frozenset[int] = frozenset()  # spec versions that differ from the current one in taskCount only
    scales_in_place: bool = True  # a running task takes up another task count; else the next one does
    longest_delay: timedelta = LONGEST_DELAY  # the most that a start waits after failures
    not_before: datetime | None = None  # when the first task may start
    runs: Runs = Runs()
    thresholds: Thresholds = Thresholds()
    previous: Detail = Detail.PENDING  # the detailed state so far
    steady: bool = False  # it has been RUNNING since it began
    over_quota: bool = False  # a quota of its team's: nothing may read
    in_force: int | None = None  # the version whose tasks were the last to begin to read, as of the round before
    last_good: LastGood | None = None  # if that is another version, which asks for other work
    idle: bool = False  # nothing has come for long, and all is settled
    all_read: bool = False  # it reads given offsets, and nothing of them is left
    waits_for_pattern_tasks: bool = False  # its spec had a pattern of topics, and what read these has not ended yet


@dataclass(frozen=True)
class Decision:
    """What to do."""

    detailed_state: Detail
    start: int = 0  # how many tasks
    group: str = ""  # the replica group that they join; empty: a new one
    restart: int = 0  # how many tasks of the last good version
    restart_group: str = ""  # the replica group that these join
    finish: list[str] = field(default_factory=list)
    scale: dict[str, int] = field(default_factory=dict)  # task id → indexers
    failures: int = 0
    next_start_at: datetime | None = None
    in_force: int | None = None  # see ``Observation``


def decide(observed: Observation) -> Decision:
    """The supervisor's next step: as many tasks of the current spec run as it has replicas, unless it is suspended,
    terminated, backing off, or has not reached Kafka.

    Tasks of an older spec, or that have read long enough, read on until one of the next is ready. While the current
    spec does not start, those of the last good one are started again when they die.
    """
    observed = _with_version_in_force(observed)
    active = [t for t in observed.tasks if t.active]
    if observed.terminated or observed.suspended:
        return _decide_stopped(observed, active)
    if observed.all_read:
        return _decide_completed(observed, active)
    if observed.over_quota:
        return _decide_without_quota(observed, active)
    if observed.idle and observed.last_good is None and not failures_in_a_row(observed.tasks):
        return _decide_idle(observed, active)
    current = [t for t in active if t.goal_is_run]
    keep = _tasks_to_keep(observed, current)
    others = [t for t in current if t not in keep]
    is_up = any(t.ready or t.waits_for_predecessor for t in keep)
    bridge = [] if is_up else _bridge_tasks(observed, others)
    version_tasks = _current_version_tasks(observed)
    plan = _plan_starts(observed, keep, version_tasks, _detailed_state(observed, active, keep, bridge))
    restart, group = (0, "") if is_up else _plan_restarts(observed, version_tasks, bridge)
    plan = replace(
        plan,
        restart=restart,
        restart_group=group,
        finish=[t.id for t in others if t not in bridge],
        scale={t.id: observed.task_count for t in keep if t.indexers_wanted != observed.task_count},
        in_force=observed.in_force,
    )
    return replace(plan, detailed_state=_shown_detail(observed, plan, version_tasks))


def _with_version_in_force(observed: Observation) -> Observation:
    """The current version is in force once a task of it has begun, whatever becomes of that."""
    if any(t.has_begun_reading and _is_current(observed, t) for t in observed.tasks):
        return replace(observed, in_force=observed.version, last_good=None)
    return observed


def _is_current(observed: Observation, task: TaskSnapshot) -> bool:
    return task.spec_version == observed.version or task.spec_version in observed.same_work_versions


def _current_version_tasks(observed: Observation) -> list[TaskSnapshot]:
    """The tasks that tell how the current version does: the last good one's, which go on beside it, do not."""
    return observed.tasks if observed.last_good is None else [t for t in observed.tasks if _is_current(observed, t)]


def _decide_without_quota(observed: Observation, active: list[TaskSnapshot]) -> Decision:
    """What reads publishes what it holds, and ends; what is not up yet is told so when it is, or waits."""
    finish = [t.id for t in active if t.goal_is_run and (t.reading or t.ready or t.refused)]
    return Decision(Detail.QUOTA_USED_UP, finish=finish, in_force=observed.in_force)


def _decide_idle(observed: Observation, active: list[TaskSnapshot]) -> Decision:
    """What reads publishes what it holds, and ends. One whose last task failed, or whose current spec has not begun to
    read, is not at rest: it goes on trying.
    """
    plan = Decision(Detail.IDLE, finish=[t.id for t in active if t.goal_is_run], in_force=observed.in_force)
    return replace(plan, detailed_state=_shown_detail(observed, plan, observed.tasks))


def _decide_completed(observed: Observation, active: list[TaskSnapshot]) -> Decision:
    """What still runs ends by itself; one that does not read its offsets, or not the current ones, is told so."""
    finish = [t.id for t in active if t.goal_is_run]
    if active:
        return Decision(Detail.RUNNING, finish=finish, in_force=observed.in_force)
    return Decision(Detail.COMPLETED, in_force=observed.in_force)


def calm_until(observed: Observation, decision: Decision) -> datetime | None:
    """Until when the next rounds would decide as this one did, as long as no task of it changes; None: they may differ.

    So it is while all tasks that there are to be, and no others, read by the current spec, and none has failed lately;
    and while it is idle, and its tasks have ended.
    """
    active = [t for t in observed.tasks if t.active]
    if observed.over_quota or decision.detailed_state == Detail.IDLE:
        return None if active else observed.now + CALM_FOR
    all_read = all(t.ready and t.goal_is_run and t.spec_version == observed.version and not t.expired for t in active)
    does_nothing = not (decision.start or decision.restart or decision.finish or decision.scale or decision.failures)
    if not (
        all_read and does_nothing and len(active) == observed.replicas and decision.detailed_state == Detail.RUNNING
    ):
        return None
    return min([observed.now + CALM_FOR, *(t.expires_at for t in active if t.expires_at is not None)])


def failures_in_a_row(tasks: list[TaskSnapshot]) -> int:
    """How many of the newest ended tasks failed one after the other; one that ran well begins the count anew."""
    count = 0
    for task in (t for t in tasks if not t.active or t.healthy):
        if not task.failed:
            break
        count += 1
        if task.ended_at is not None and task.ended_at - task.created_at > HEALTHY_AFTER:
            break
    return count


def failed_starts(tasks: list[TaskSnapshot]) -> int:
    """Failures in a row since a task last published: that one had started well, whatever ended it."""
    failures = failures_in_a_row(tasks)
    newest = [t for t in tasks if not t.active or t.healthy][:failures]
    return next((count for count, task in enumerate(newest, 1) if task.published), failures)


def backoff_delay(failures: int, longest: timedelta = LONGEST_DELAY) -> timedelta:
    """1, 2, 4 … seconds after the first, second, third … failure in a row, and no more than ``longest``."""
    return min(longest, FIRST_DELAY * 2 ** min(max(0, failures - 1), 20))


def unhealthy_state(runs: Runs, thresholds: Thresholds) -> Detail | None:
    """The detailed state that so many failed iterations make; None when they are too few."""
    if runs.failed < thresholds.unhealthiness:
        return None
    if not runs.stream_failed:
        return Detail.UNHEALTHY_SUPERVISOR
    return Detail.LOST_CONTACT_WITH_STREAM if runs.connected else Detail.UNABLE_TO_CONNECT_TO_STREAM


def _tasks_to_keep(observed: Observation, current: list[TaskSnapshot]) -> list[TaskSnapshot]:
    """The newest replica group that fits, those that are up first, and no more than there are to be."""
    group = next((_group_key(t) for t in current if _fits(observed, t) and not t.expired), None)
    members = [t for t in current if _group_key(t) == group]
    return sorted(members, key=lambda t: not t.ready)[: observed.replicas]


def _bridge_tasks(observed: Observation, others: list[TaskSnapshot]) -> list[TaskSnapshot]:
    """Who reads until the next task is up: the newest group that does; else the last good version's, on its way; else
    one that Kafka refuses.
    """
    good_version = None if observed.last_good is None else observed.last_good.version
    group = next((_group_key(t) for t in others if t.reading), None)
    group = group or next((_group_key(t) for t in others if t.spec_version == good_version), None)
    group = group or next((_group_key(t) for t in others if t.refused), None)
    return [t for t in others if _group_key(t) == group]


def _plan_restarts(
    observed: Observation, version_tasks: list[TaskSnapshot], bridge: list[TaskSnapshot]
) -> tuple[int, str]:
    """How many tasks of the last good version to start, and the replica group that they join."""
    last_good = observed.last_good
    does_not_start = observed.runs.failed or any(t.failed or t.refused for t in version_tasks)
    if last_good is None or not does_not_start or any(t.spec_version != last_good.version for t in bridge):
        return 0, ""
    good_tasks = [t for t in observed.tasks if t.spec_version == last_good.version]
    start_at = _next_start(good_tasks, observed.longest_delay)
    if start_at is not None and observed.now < start_at:
        return 0, ""
    return max(0, last_good.replicas - len(bridge)), bridge[0].group if bridge else ""


def _group_key(task: TaskSnapshot) -> str:
    return task.group or task.id


def _fits(observed: Observation, task: TaskSnapshot) -> bool:
    if not observed.scales_in_place and task.indexers_wanted != observed.task_count:
        return False
    return _is_current(observed, task)


def _decide_stopped(observed: Observation, active: list[TaskSnapshot]) -> Decision:
    finish = [t.id for t in active if t.goal_is_run]
    if active:
        return Decision(Detail.STOPPING, finish=finish, in_force=observed.in_force)
    return Decision(Detail.TERMINATED if observed.terminated else Detail.SUSPENDED, in_force=observed.in_force)


def _plan_starts(
    observed: Observation, keep: list[TaskSnapshot], version_tasks: list[TaskSnapshot], detail: Detail
) -> Decision:
    """Which tasks to start, and the detailed state, which is another if none is started now."""
    plan = Decision(detail, failures=failures_in_a_row(version_tasks))
    missing = observed.replicas - len(keep)
    if not missing:
        return plan
    if not observed.tasks and observed.not_before is not None and observed.now < observed.not_before:
        return replace(plan, detailed_state=Detail.PENDING, next_start_at=observed.not_before)
    if observed.waits_for_pattern_tasks or (observed.runs.failed and not observed.runs.connected):
        return plan
    start_at = _next_start(version_tasks, observed.longest_delay)
    if start_at is not None and observed.now < start_at:
        return replace(plan, detailed_state=Detail.BACKING_OFF, next_start_at=start_at)
    return replace(plan, start=missing, group=keep[0].group if keep else "")


def _detailed_state(
    observed: Observation, active: list[TaskSnapshot], keep: list[TaskSnapshot], bridge: list[TaskSnapshot]
) -> Detail:
    """The detailed state of a supervisor whose tasks do not fail. But for RUNNING and what it has no room for, of its
    first iterations only.
    """
    lacks = [] if any(t.ready for t in keep) else [t.waits_for for t in keep if t.waits_for]
    if lacks:
        return _WAITING_STATES[lacks[0]]
    if any(t.refused for t in keep):
        return Detail.KAFKA_REFUSES
    if any(t.shared for t in keep):
        return Detail.STRANGERS_IN_GROUP
    if observed.steady or bridge or any(t.ready for t in keep):
        return Detail.RUNNING
    if observed.runs.failed and not observed.runs.connected:
        return Detail.CONNECTING_TO_STREAM
    if any(not t.goal_is_run for t in active):
        return Detail.DISCOVERING_INITIAL_TASKS
    return Detail.CREATING_TASKS


def _shown_detail(observed: Observation, plan: Decision, version_tasks: list[TaskSnapshot]) -> Detail:
    """The plan's, if nothing fails. What was unhealthy stays so until enough has gone well in a row."""
    limits, previous = observed.thresholds, observed.previous
    unhealthy_detail = unhealthy_state(observed.runs, limits)
    if unhealthy_detail is not None:
        return unhealthy_detail
    if plan.failures >= limits.task_unhealthiness:
        return Detail.UNHEALTHY_TASKS
    if previous.state == State.UNHEALTHY_SUPERVISOR and observed.runs.good < limits.healthiness:
        return previous
    if not plan.detailed_state.state.is_healthy:
        return plan.detailed_state
    if previous == Detail.UNHEALTHY_TASKS and _successes_in_a_row(version_tasks) < limits.task_healthiness:
        return previous
    return plan.detailed_state


def _successes_in_a_row(tasks: list[TaskSnapshot]) -> int:
    """Of the newest tasks: ended well, or reading for long enough to call it that."""
    count = 0
    for task in (t for t in tasks if not t.active or t.healthy):
        if task.failed:
            break
        count += 1
    return count


def _next_start(tasks: list[TaskSnapshot], longest: timedelta) -> datetime | None:
    """When the next one may start after these; None: at once."""
    failures = failed_starts(tasks)
    ended = [t.ended_at for t in tasks if not t.active and t.ended_at is not None]
    return max(ended) + backoff_delay(failures, longest) if failures and ended else None
