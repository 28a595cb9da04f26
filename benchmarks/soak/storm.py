"""A storm of rebalances: indexers and strangers join and leave a consumer group all the time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from benchmarks.soak.lanes import Lane
from tests.support.house import House
from tests.support.storms import Stranger, pulse

STEP_S = 2.5
WINDOW_S = 10.0
MAX_FOREIGN_MEMBERS = 2
MAX_INDEXERS = 3


def storm(house: House, lane: Lane, seconds: float, chance: random.Random, say: Callable[[str], None]) -> list[str]:
    """From one to three indexers and up to two strangers, changed every few seconds; what stood still, if anything.

    Something must be published in each ten seconds.
    """
    strangers: list[Stranger] = []
    began = time.monotonic()
    pause = threading.Event()
    try:
        with pulse(house, lane.datasource, WINDOW_S) as windows:
            while time.monotonic() - began < seconds:
                say(_change(house, lane, strangers, chance))
                pause.wait(STEP_S)
    finally:
        for stranger in strangers:
            stranger.leave()
    return [f"{lane.kind}: nothing was published for {WINDOW_S:.0f} s" for rows in windows if not rows]


def _change(house: House, lane: Lane, strangers: list[Stranger], chance: random.Random) -> str:
    if chance.random() < 0.5:
        lane.task_count = chance.choice([n for n in range(1, MAX_INDEXERS + 1) if n != lane.task_count])
        house.api("POST", f"/api/v1/supervisors/{lane.datasource}/scale/", {"taskCount": lane.task_count})
        return f"storm: {lane.task_count} indexers"
    if strangers and (len(strangers) == MAX_FOREIGN_MEMBERS or chance.random() < 0.5):
        strangers.pop(0).leave()
        return "storm: a stranger leaves"
    strangers.append(Stranger(house, lane.topic, lane.datasource))
    return "storm: a stranger joins"
