"""A storm of rebalances: indexers and strangers join and leave a consumer group all the time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer

from benchmarks.soak.lanes import Lane, published
from tests.support.house import House

STEP_S = 2.5
WINDOW_S = 10.0
MOST_STRANGERS = 2
MOST_INDEXERS = 3


class Stranger:
    """A member of the group that is not Headgate's: it is dealt partitions, and reads them for itself."""

    def __init__(self, house: House, lane: Lane) -> None:
        config = {
            "bootstrap.servers": house.bootstrap,
            "group.id": lane.datasource,
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        self._consumer = Consumer(config)
        self._consumer.subscribe([lane.topic])
        self._gone = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._gone.is_set():
            self._consumer.consume(100, 0.2)

    def leave(self) -> None:
        """In an orderly way."""
        self._gone.set()
        self._thread.join(20)
        self._consumer.close()


def storm(house: House, lane: Lane, seconds: float, chance: random.Random, say: Callable[[str], None]) -> list[str]:
    """From one to three indexers and up to two strangers, changed every few seconds; what stood still, if anything.

    Something must be published in each ten seconds.
    """
    strangers: list[Stranger] = []
    stood_still: list[str] = []
    began = looked = time.monotonic()
    before = published(house, lane)
    pause = threading.Event()
    try:
        while time.monotonic() - began < seconds:
            say(_change(house, lane, strangers, chance))
            pause.wait(STEP_S)
            if time.monotonic() - looked >= WINDOW_S:
                now = published(house, lane)
                if now == before:
                    stood_still.append(f"{lane.kind}: nothing was published for {time.monotonic() - looked:.0f} s")
                looked, before = time.monotonic(), now
    finally:
        for stranger in strangers:
            stranger.leave()
    return stood_still


def _change(house: House, lane: Lane, strangers: list[Stranger], chance: random.Random) -> str:
    if chance.random() < 0.5:
        lane.task_count = chance.choice([n for n in range(1, MOST_INDEXERS + 1) if n != lane.task_count])
        house.api("POST", f"/api/v1/supervisors/{lane.datasource}/scale/", {"taskCount": lane.task_count})
        return f"storm: {lane.task_count} indexers"
    if strangers and (len(strangers) == MOST_STRANGERS or chance.random() < 0.5):
        strangers.pop(0).leave()
        return "storm: a stranger leaves"
    strangers.append(Stranger(house, lane))
    return "storm: a stranger joins"
