"""The pool of indexers that the installation runs at once: which of the waiting tasks may start, and what is in use.

A team may have fewer for itself: its quota. Repairs and replays take no place: they are small, and what waits for them
is never lost for want of one. An application that serves all has the places of its slots, and gives way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from controlplane.common.health import Code, Health
from controlplane.quotas.services import limits_of_teams
from controlplane.sources.spec_sources import FILL_MARK
from controlplane.spark import spark_master
from controlplane.tasks.models import Indexer, Resident, Status, Task
from controlplane.tasks.slot_needs import TeamSlots, never_enough_slots, slots_text

NOTICE_AFTER = timedelta(seconds=10)  # a task that has had no room for so long is not only starting
_LOCK = 0x43415041
# All of a task that is looked at here: its documents are long.
_TASK_COLUMNS = ("id", "supervisor_id", "replica_group", "indexers_wanted", "created_at", "without_slot_since")


@dataclass(frozen=True)
class WaitingTask:
    """A task that waits to be launched."""

    id: str
    indexers: int
    since: datetime
    is_successor: bool = False  # a task of its supervisor reads until this one is up, or has just ended for it
    held: int = 0  # places that it gets back from those before it once they have ended
    team: str = ""
    is_backfill: bool = False  # it waits behind those that read on


@dataclass(frozen=True)
class Pool:
    """Places for indexers, and who waits for some."""

    size: int | None  # None for no limit
    used: int  # places of tasks that were launched
    waiting: Sequence[WaitingTask] = ()  # oldest first
    teams: Mapping[str, TeamSlots] = field(default_factory=dict)  # those that have a limit
    is_of_spark: bool = False  # its places are slots of Spark, and those that wait for one have been launched

    @property
    def free(self) -> int | None:
        """None for no limit. Never negative, although a pool may be made smaller while tasks run."""
        return None if self.size is None else max(0, self.size - self.used)

    @property
    def demand(self) -> int:
        """Places that waiting tasks ask for."""
        return sum(a.indexers for a in self.waiting)


def admitted(pool: Pool) -> list[str]:
    """Who may be launched now, in this order. Who follows a task of its own goes first, then who has waited longest,
    and backfills last.

    Nobody overtakes a task that has to wait for more places, or a large one would wait for ever; only one that asks
    for more than the pool will ever have holds nobody up. What its team's limit keeps waiting holds up its team alone.
    """
    free, launchable = pool.free, []
    free_by_team = {team.name: team.free for team in pool.teams.values()}
    full: set[str] = set()
    for waiter in _queue(pool):
        team_free = free_by_team.get(waiter.team)
        if waiter.team in full or (team_free is not None and waiter.indexers > team_free):
            full.add(waiter.team)
            continue
        if free is not None and waiter.indexers > free:
            break
        free = None if free is None else free - waiter.indexers
        free_by_team[waiter.team] = None if team_free is None else team_free - waiter.indexers
        launchable.append(waiter.id)
    return launchable


def _queue(pool: Pool) -> list[WaitingTask]:
    possible = [a for a in pool.waiting if _ever_fits(pool, a)]
    return sorted(possible, key=lambda a: (a.is_backfill, not (a.is_successor and _fits_after(pool, a))))


def _ever_fits(pool: Pool, waiter: WaitingTask) -> bool:
    team = pool.teams.get(waiter.team)
    if team is not None and (team.stopped or (team.size is not None and waiter.indexers > team.size)):
        return False
    return pool.size is None or waiter.indexers <= pool.size


def _fits_after(pool: Pool, waiter: WaitingTask) -> bool:
    """Whether there is room for it once those before it have ended."""
    team = pool.teams.get(waiter.team)
    limits = [(pool.size, pool.used)] + ([(team.size, team.used)] if team is not None else [])
    return _ever_fits(pool, waiter) and all(
        size is None or waiter.indexers <= size - used + waiter.held for size, used in limits
    )


def must_give_way(pool: Pool, task_id: str, now: datetime) -> bool:
    """Whether a task can only start when its predecessor, which reads on until then, has ended first."""
    waiter = next((a for a in pool.waiting if a.id == task_id), None)
    if waiter is None or not waiter.held or task_id in admitted(pool):
        return False
    return now - waiter.since >= settings.HANDOVER_PATIENCE and _fits_after(pool, waiter)


def crowded_out(task: Task, now: datetime) -> bool:
    """Whether a supervisor's next task has waited long enough for room that only its predecessor's end will make."""
    if _waits_for_capacity(task):
        return must_give_way(pool(), task.pk, now)
    if task.ended or task.without_slot_since is None or now - task.without_slot_since < settings.HANDOVER_PATIENCE:
        return False
    cluster = spark_master.cluster_with_cores()
    return cluster is None or cluster.would_get_cores(task.pk, [t.pk for t in _predecessors(task, list(running()))])


def lacks_room(task: Task, now: datetime) -> str:
    """What a task that has not ended has waited for so long that somebody should know: a slot, capacity, or nothing."""
    if task.ended:
        return ""
    if task.without_slot_since is not None and now - task.without_slot_since >= NOTICE_AFTER:
        return "slot"
    waits = now - task.created_at >= NOTICE_AFTER and _waits_for_capacity(task) and task.pk not in admitted(pool())
    return "capacity" if waits else ""


def _waits_for_capacity(task: Task) -> bool:
    return task.status == Status.PENDING and task.launched_at is None and task.in_pool


def shown_pool() -> Pool:
    """What there is for all: the pool if it has a limit, else the cores of Spark's cluster and who waits for one."""
    cluster = None if settings.WORKER_CAPACITY else spark_master.cluster_with_cores()
    if cluster is None:
        return pool()
    launched = list(running())
    waiting = _waiting_list([t for t in launched if t.without_slot_since is not None], launched)
    return Pool(size=cluster.cores, used=cluster.used, waiting=waiting, is_of_spark=True)


def pool() -> Pool:
    """The pool as it is now."""
    launched = list(running())
    return Pool(
        size=settings.WORKER_CAPACITY or None,
        used=sum(slots_of(t) for t in launched) + _slots_of_residents(),
        waiting=_waiting_list(list(_unlaunched()), launched),
        teams=_teams(launched),
    )


def _teams(launched: Sequence[Task]) -> dict[str, TeamSlots]:
    limits = limits_of_teams()
    used = _slots_by_team(launched) if limits else {}
    return {name: TeamSlots(name, size, used.get(name, 0), none) for name, (size, none) in limits.items()}


def slots_by_team() -> dict[str, int]:
    """How many places the tasks of each team have."""
    return _slots_by_team(list(running()))


def _slots_by_team(launched: Sequence[Task]) -> dict[str, int]:
    slots: dict[str, int] = {}
    for task in launched:
        slots[_team_name(task)] = slots.get(_team_name(task), 0) + slots_of(task)
    return slots


def _team_name(task: Task) -> str:
    name: str = task.of_team  # type: ignore[attr-defined]  # annotated
    return name


def blocking_team(task: Task, current: Pool) -> TeamSlots | None:
    """The limit of its team, if that is what keeps the task waiting."""
    waiter = next((a for a in current.waiting if a.id == task.pk), None)
    team = current.teams.get(waiter.team) if waiter else None
    if waiter is None or team is None or team.free is None:
        return None
    return team if waiter.indexers > team.free else None


def _slots_of_residents() -> int:
    return sum(Resident.objects.filter(ended_at=None).values_list("slots", flat=True))


def has_room_for(needed: int) -> bool:
    """Whether an application that serves all may be launched: nobody waits. In a transaction: until its end."""
    _lock_pool()
    current = pool()
    return not current.waiting and (current.free is None or current.free >= needed)


def slots_of_supervisors() -> dict[str, int]:
    """How many places the tasks of each supervisor have; under the empty name manual tasks."""
    by_supervisor: dict[str, int] = {}
    for task in running().filter(without_slot_since=None):
        by_supervisor[task.supervisor_id] = by_supervisor.get(task.supervisor_id, 0) + slots_of(task)
    return by_supervisor


def running() -> QuerySet[Task]:
    """Tasks that were launched and have places; ``slots_of`` says how many."""
    # By each task's own: a join may read all indexers that there ever were.
    alive = Indexer.objects.filter(task=OuterRef("pk")).exclude(state="stopped").order_by().values("task")
    launched = Task.objects.active().in_pool().exclude(launched_at=None)
    counted = Coalesce(Subquery(alive.annotate(n=Count("pk")).values("n")), 0)
    return launched.annotate(alive=counted, of_team=F("datasource__team__name")).only(*_TASK_COLUMNS)


def _unlaunched() -> QuerySet[Task]:
    waiting = Task.objects.in_pool().filter(status=Status.PENDING, launched_at=None)
    return waiting.annotate(of_team=F("datasource__team__name")).only(*_TASK_COLUMNS).order_by("created_at", "id")


def slots_of(task: Task) -> int:
    """Indexers that are to end hold theirs until they have."""
    alive: int = task.alive  # type: ignore[attr-defined]  # annotated
    return max(task.indexers_wanted, alive)


def _waiting_list(waiting: Sequence[Task], launched: list[Task]) -> list[WaitingTask]:
    """Two statements, however many wait."""
    ended = _newest_ends(waiting)
    return [_waiting_task(t, _predecessors(t, launched), ended.get(t.supervisor_id)) for t in waiting]


def _waiting_task(task: Task, predecessors: list[Task], ended_at: datetime | None) -> WaitingTask:
    """``ended_at``: when the newest task that its supervisor had at work ended."""
    return WaitingTask(
        id=task.pk,
        indexers=task.indexers_wanted,
        since=task.created_at,
        is_successor=bool(predecessors) or (ended_at is not None and ended_at >= task.created_at),
        held=sum(slots_of(t) for t in predecessors),
        team=_team_name(task),
        is_backfill=FILL_MARK in task.supervisor_id,
    )


def _newest_ends(waiting: Sequence[Task]) -> dict[str, datetime]:
    """By supervisor; of tasks that were launched, and ended since the first of these waits."""
    supervisors = {t.supervisor_id for t in waiting if t.supervisor_id}
    if not supervisors:
        return {}
    ended = Task.objects.ingesting().filter(
        supervisor_id__in=supervisors, ended_at__gte=min(t.created_at for t in waiting)
    )
    return dict(
        ended.exclude(launched_at=None).values_list("supervisor_id").annotate(newest=Max("ended_at")).order_by()
    )


def _predecessors(task: Task, launched: list[Task]) -> list[Task]:
    others = [t for t in launched if task.supervisor_id and t.supervisor_id == task.supervisor_id and t.pk != task.pk]
    return [t for t in others if not task.replica_group or t.replica_group != task.replica_group]


def may_launch(task: Task) -> bool:
    """Whether a task that waits may be launched now. In a transaction: until its end nobody else decides."""
    if not task.in_pool or not _is_limited():
        return True
    _lock_pool()
    return task.pk in admitted(pool())


def _is_limited() -> bool:
    return bool(settings.WORKER_CAPACITY) or bool(limits_of_teams())


def launchable(forgotten_since: datetime) -> list[Task]:
    """Those that wait although they need not: their launch message was lost, or there was no room before."""
    waiting = Task.objects.filter(status=Status.PENDING, launched_at=None)
    due = Q(created_at__lt=forgotten_since)
    if _is_limited():
        due = Q(due, kind__in=[*Task.SMALL, *Task.OF_SEGMENTS]) | Q(pk__in=admitted(pool()))
    return list(waiting.filter(due))


@transaction.atomic
def scale(task_id: str, indexers: int) -> int:
    """Let an active task run so many indexers, or as many more as there is room for; returns how many.

    Tasks that wait come before indexers more of one that runs.
    """
    task = Task.objects.active().filter(pk=task_id).first()
    if task is None:
        return 0
    if task.launched_at is not None and indexers > task.indexers_wanted and _is_limited():
        _lock_pool()
        indexers = min(indexers, task.indexers_wanted + _room_for_more(task, pool()))
    Task.objects.active().filter(pk=task_id).update(indexers_wanted=indexers)
    return indexers


def _room_for_more(task: Task, current: Pool) -> int:
    team = task.datasource.team.name
    team_slots, waiting = current.teams.get(team), _queue(current)
    free_counts = []
    if current.free is not None:
        free_counts.append(0 if waiting else current.free)
    if team_slots is not None and team_slots.free is not None:
        free_counts.append(0 if any(a.team == team for a in waiting) else team_slots.free)
    return min(free_counts, default=settings.SPARK_SLOTS)


def _lock_pool() -> None:
    """Two workers that both saw the last free place would both take it: the lock ends with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def waiting_for_slot(tasks: Iterable[Task]) -> set[str]:
    """The ids of those that have to wait: they are not launched, or Spark has no slot for them."""
    listed = list(tasks)
    current = pool() if any(_waits_for_capacity(t) for t in listed) else None
    return {t.pk for t in listed if _has_no_slot(t) or (current and _lacks_capacity(t, current))}


def _has_no_slot(task: Task) -> bool:
    return not task.ended and task.without_slot_since is not None


def _lacks_capacity(task: Task, current: Pool) -> bool:
    return _waits_for_capacity(task) and task.pk not in admitted(current)


def wait_health(task: Task) -> Health | None:
    """Why a task is not launched, or has no slot of Spark yet; None when it need not wait."""
    if _has_no_slot(task):
        return _health_without_slot(task)
    if not _waits_for_capacity(task):
        return None
    state = pool()
    return _health_in_queue(task, state) if _lacks_capacity(task, state) else None


def _health_in_queue(task: Task, state: Pool) -> Health | None:
    team = blocking_team(task, state)
    if team is not None:
        return team.wait_health(task.indexers_wanted)
    if state.size is None:
        return None  # another quota of its team's is used up, which its supervisor says
    if task.indexers_wanted > state.size:
        return never_enough_slots(task.indexers_wanted, state.size)
    turn = [a.id for a in _queue(state)].index(task.pk)
    ahead_text = f", and {turn} {'task comes' if turn == 1 else 'tasks come'} first" if turn else ""
    free = f"{state.free} of {state.size} {'is' if state.free == 1 else 'are'} free"
    cause = f"It needs {slots_text(task.indexers_wanted)}; {free}{ahead_text}. It starts when enough slots are free."
    return Health.of(Code.WAITING_FOR_SLOT, cause)


def _health_without_slot(task: Task) -> Health:
    cluster = spark_master.cluster_with_cores()
    used = f"; {cluster.used} of the cluster's {cluster.cores} cores are in use" if cluster else ""
    cause = f"Spark has no free core, or not enough memory, for it{used}. "
    if _predecessors(task, list(running())):
        bound = settings.HANDOVER_PATIENCE.total_seconds()
        cause += f"The previous task continues with its own spec and stops after {bound:.0f} s."
    else:
        cause += "It reads when a core is free."
    return Health.of(Code.WAITING_FOR_SLOT, cause)
