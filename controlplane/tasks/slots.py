"""Who has the pool's places and who waits for some, as far as a user may see it: all others are one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from controlplane.tasks import capacity
from controlplane.tasks.models import Resident, Task
from controlplane.teams.models import User


@dataclass(frozen=True)
class SlotHolder:
    """Places that one task has, or all who are not named; ``who`` says it of those that are no task of the user's."""

    indexers: int
    who: str = ""
    task: Task | None = None


@dataclass(frozen=True)
class SlotWaiter:
    """A task that waits for places; without a task, all of other teams as one."""

    indexers: int
    since: datetime
    task: Task | None = None
    why: str = ""


@dataclass(frozen=True)
class Slots:
    """The pool, its holders with the most places first, and who waits, the oldest first."""

    pool: capacity.Pool
    holders: list[SlotHolder]
    waiting: list[SlotWaiter]


def slots_for(user: User) -> Slots:
    """The pool of the whole installation; it names only the tasks of the user's teams."""
    pool = capacity.shown_pool()
    slots_by_task = {
        t.pk: capacity.slots_of(t) for t in capacity.running() if not (pool.is_of_spark and t.without_slot_since)
    }
    visible = _visible_tasks(user, {*slots_by_task, *(waiter.id for waiter in pool.waiting)})
    return Slots(pool, _holders(pool, slots_by_task, visible), _waiting(pool, visible))


def _visible_tasks(user: User, ids: set[str]) -> dict[str, Task]:
    tasks = Task.objects.visible_to(user).filter(pk__in=ids).select_related("datasource__team")
    return {task.pk: task for task in tasks}


def _holders(pool: capacity.Pool, slots_by_task: Mapping[str, int], visible: Mapping[str, Task]) -> list[SlotHolder]:
    named_holders = [SlotHolder(places, task=visible[pk]) for pk, places in slots_by_task.items() if pk in visible]
    slots = sum(Resident.objects.filter(ended_at=None).values_list("slots", flat=True))
    unnamed = [
        SlotHolder(sum(places for pk, places in slots_by_task.items() if pk not in visible), "Tasks of other teams"),
        SlotHolder(slots, "Compaction, for all datasources"),
        SlotHolder(
            max(0, pool.used - sum(slots_by_task.values()) - slots) if pool.is_of_spark else 0,
            "Other programs on the cluster",
        ),
    ]
    return [*sorted(named_holders, key=lambda h: -h.indexers), *(holder for holder in unnamed if holder.indexers)]


def _waiting(pool: capacity.Pool, visible: Mapping[str, Task]) -> list[SlotWaiter]:
    limits = capacity.pool() if pool.is_of_spark else pool
    waiters = [
        SlotWaiter(
            a.indexers,
            visible[a.id].without_slot_since or a.since,
            visible[a.id],
            _wait_reason(visible[a.id], limits),
        )
        for a in pool.waiting
        if a.id in visible
    ]
    others = [waiter for waiter in pool.waiting if waiter.id not in visible]
    if others:
        waiters.append(SlotWaiter(sum(a.indexers for a in others), min(a.since for a in others)))
    return waiters


def _wait_reason(task: Task, limits: capacity.Pool) -> str:
    team = capacity.blocking_team(task, limits)
    return "" if team is None else team.wait_health(task.indexers_wanted).text
