"""What tasks wait for that have no room: how much they ask for, how much there is, and who has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from controlplane.spark import spark_master
from controlplane.tasks import capacity
from controlplane.tasks.models import Task
from controlplane.tasks.slot_needs import TeamSlots

NAMED = 3


@dataclass(frozen=True)
class SlotWait:
    """What one task waits for."""

    needed: int  # indexers
    since: datetime
    size: int | None = None  # of the whole installation; None: not known
    free: int | None = None
    # Who has the most places, of those whose names the reader may know, and how many all others have.
    users: tuple[tuple[str, int], ...] = ()
    other_slots: int = 0
    team: TeamSlots | None = None  # its own team's limit, if that is what it waits for

    @property
    def never(self) -> bool:
        """Whether it asks for more than there will ever be."""
        if self.team is not None:
            return self.team.size is not None and self.needed > self.team.size
        return bool(settings.WORKER_CAPACITY) and self.size is not None and self.needed > self.size

    @property
    def text(self) -> str:
        """Who has the places, as the end of a sentence."""
        parts = [f"{name} has {places:,}" for name, places in self.users]
        parts += [f"others have {self.other_slots:,}"] if self.other_slots else []
        return f" ({', '.join(parts)})" if parts else ""


def slot_waits_of(tasks: Iterable[Task], names: Collection[str]) -> dict[str, SlotWait]:
    """By task, of those that have to wait. ``names``: the supervisors that may be named."""
    listed = list(tasks)
    awaited = capacity.waiting_for_slot(listed)
    if not awaited:
        return {}
    pool, team_pool = capacity.shown_pool(), capacity.pool()
    users, others = _top_users(capacity.slots_of_supervisors(), names)
    return {
        t.pk: SlotWait(
            needed=t.indexers_wanted,
            since=t.without_slot_since or t.created_at,
            size=pool.size,
            free=pool.free,
            users=users,
            other_slots=others,
            team=capacity.blocking_team(t, team_pool),
        )
        for t in listed
        if t.pk in awaited
    }


def _top_users(places: Mapping[str, int], names: Collection[str]) -> tuple[tuple[tuple[str, int], ...], int]:
    named = sorted(((s, n) for s, n in places.items() if s in names and n), key=lambda used: (-used[1], used[0]))
    shown = tuple(named[:NAMED])
    return shown, sum(places.values()) - sum(n for _, n in shown)


def overlap_warning(indexers: int) -> str:
    """What a supervisor's ``indexers`` (replicas × taskCount) mean for its handovers; empty when there is room."""
    cluster = None if settings.WORKER_CAPACITY else spark_master.cluster_with_cores()
    size = cluster.cores if cluster else settings.WORKER_CAPACITY
    if not size or 2 * indexers <= size:
        return ""
    return (
        f"This installation has {size} slots, too few for two tasks of {indexers} at the same time. When one "
        "task hands off to the next, reading pauses until the first has ended."
    )
