"""A share group's indexers are killed all the time, at any place."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.kills import PLACES, survive_kills
from tests.support.workers import Workers

KILLS = 10


@pytest.mark.timeout(900)
def test_indexers_are_killed_at_random_places(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 15 of the failure matrix: between publish and acknowledgement among them; fifty kills: ``benchmarks soak``.

    Rows 1 and 2 come with it.
    """
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    datasource, records, places = survive_kills(house, make_workers, random.Random(seed), KILLS)
    assert sum(places.values()) == KILLS
    assert set(places) & set(PLACES), places
    totals = check_exactly_once(house, datasource, range(records))
    assert totals["redelivered"] > 0
