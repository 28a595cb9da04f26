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
    pool = capacity.shown()
    held = {t.pk: capacity.slots_of(t) for t in capacity.running() if not (pool.of_spark and t.without_slot_since)}
    seen = _seen(user, {*held, *(asking.id for asking in pool.waiting)})
    return Slots(pool, _holders(pool, held, seen), _waiting(pool, seen))


def _seen(user: User, ids: set[str]) -> dict[str, Task]:
    mine = Task.objects.visible_to(user).filter(pk__in=ids).select_related("datasource__team")
    return {task.pk: task for task in mine}


def _holders(pool: capacity.Pool, held: Mapping[str, int], seen: Mapping[str, Task]) -> list[SlotHolder]:
    mine = [SlotHolder(places, task=seen[pk]) for pk, places in held.items() if pk in seen]
    slots = sum(Resident.objects.filter(ended_at=None).values_list("slots", flat=True))
    rest = [
        SlotHolder(sum(places for pk, places in held.items() if pk not in seen), "Tasks of other teams"),
        SlotHolder(slots, "Compaction, for all datasources"),
        SlotHolder(
            max(0, pool.used - sum(held.values()) - slots) if pool.of_spark else 0, "Other programs on the cluster"
        ),
    ]
    return [*sorted(mine, key=lambda h: -h.indexers), *(holding for holding in rest if holding.indexers)]


def _waiting(pool: capacity.Pool, seen: Mapping[str, Task]) -> list[SlotWaiter]:
    limits = capacity.pool() if pool.of_spark else pool
    mine = [
        SlotWaiter(a.indexers, seen[a.id].without_slot_since or a.asked_at, seen[a.id], _why(seen[a.id], limits))
        for a in pool.waiting
        if a.id in seen
    ]
    others = [asking for asking in pool.waiting if asking.id not in seen]
    if others:
        mine.append(SlotWaiter(sum(a.indexers for a in others), min(a.asked_at for a in others)))
    return mine


def _why(task: Task, limits: capacity.Pool) -> str:
    team = capacity.kept_by_team(task, limits)
    return "" if team is None else team.told(task.indexers_wanted)
