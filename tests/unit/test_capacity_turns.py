"""Who may start in a pool of indexers: the decision as a table, and what holds for every pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from controlplane.tasks.capacity import Pool, WaitingTask, admitted, must_give_way

PATIENCE: timedelta = settings.HANDOVER_PATIENCE
NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


def asking(name: str, indexers: int, held: int = 0, waited: timedelta = PATIENCE) -> WaitingTask:
    return WaitingTask(name, indexers, NOW - waited, is_successor=held > 0, held=held)


TABLE: dict[str, tuple[Pool, list[str]]] = {
    "no limit": (Pool(None, 1000, [asking("a", 500)]), ["a"]),
    "room for both": (Pool(10, 4, [asking("a", 3), asking("b", 3)]), ["a", "b"]),
    "room for the first": (Pool(10, 4, [asking("a", 4), asking("b", 3)]), ["a"]),
    "a small one does not overtake a large one": (Pool(10, 8, [asking("a", 3), asking("b", 1)]), []),
    "what never fits holds nobody up": (Pool(10, 8, [asking("a", 11), asking("b", 2)]), ["b"]),
    "who follows a task of its own goes first": (Pool(10, 7, [asking("a", 3), asking("b", 3, held=3)]), ["b"]),
    "and waits for that one's places before others": (Pool(10, 9, [asking("a", 1), asking("b", 3, held=3)]), []),
    "unless those would not do either": (Pool(10, 9, [asking("a", 1), asking("b", 8, held=3)]), ["a"]),
    "a backfill goes last": (Pool(10, 9, [replace(asking("a", 1), is_backfill=True), asking("b", 1)]), ["b"]),
    "the pool was made smaller": (Pool(4, 9, [asking("a", 1)]), []),
}


@pytest.mark.parametrize("case", TABLE)
def test_who_is_admitted(case: str) -> None:
    pool, expected = TABLE[case]
    assert admitted(pool) == expected


GIVE_WAY: dict[str, tuple[Pool, bool]] = {
    "full but for its own": (Pool(6, 6, [asking("next", 3, held=3)]), True),
    "there may be room of others yet": (Pool(6, 6, [asking("next", 3, held=3, waited=timedelta(seconds=19))]), False),
    "there is room": (Pool(6, 3, [asking("next", 3, held=3)]), False),
    "it would not fit even then": (Pool(6, 6, [asking("next", 4, held=3)]), False),
    "it has no predecessor": (Pool(6, 6, [asking("next", 3)]), False),
    "no limit": (Pool(None, 6, [asking("next", 3, held=3)]), False),
    "another one": (Pool(6, 6, [asking("other", 3, held=3)]), False),
}


@pytest.mark.parametrize("case", GIVE_WAY)
def test_who_must_give_way(case: str) -> None:
    pool, expected = GIVE_WAY[case]
    assert must_give_way(pool, "next", NOW) is expected


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    size = draw(st.integers(1, 12))
    used = draw(st.integers(0, 14))
    waiting = []
    for n in range(draw(st.integers(0, 6))):
        held = draw(st.integers(0, used))
        waiting.append(asking(str(n), draw(st.integers(1, 14)), held=held))
    return Pool(size, used, waiting)


@given(pools())
def test_the_pool_is_never_overfilled(pool: Pool) -> None:
    taken = sum(a.indexers for a in pool.waiting if a.id in admitted(pool))
    assert taken <= (pool.free or 0)


@given(pools())
def test_somebody_gets_on(pool: Pool) -> None:
    """With all tasks ended, the first that can fit at all is admitted: nothing waits for ever."""
    empty = replace(pool, used=0, waiting=[replace(a, held=0, is_successor=False) for a in pool.waiting])
    possible = [a.id for a in empty.waiting if a.indexers <= (pool.size or 0)]
    assert admitted(empty)[:1] == possible[:1]


@given(pools())
def test_no_handover_waits_for_itself(pool: Pool) -> None:
    """In a pool that is full of one supervisor's own tasks, its next one is let in or its predecessor gives way."""
    own = [a for a in pool.waiting if a.is_successor and a.held and a.held == pool.used and a.indexers <= a.held]
    for asks in own if pool.used <= (pool.size or 0) else []:
        alone = replace(pool, waiting=[asks])
        assert admitted(alone) or must_give_way(alone, asks.id, NOW)
