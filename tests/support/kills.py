"""Indexers that are killed again and again, at places and moments that a seed chooses, while records come."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.house import House
from tests.support.records import Endless, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

PLACES = ("decoded", "uploaded", "committed", "before_ack")
ANYWHERE = "anywhere"
LONGEST_LIFE_S = 8.0
A_BREATH = 5  # kills, and then all run for a while: deliveries are not to be used up


@dataclass(frozen=True)
class _Victim:
    """Due when it stands at its place, or by the clock."""

    place: str
    held: Path
    at: float

    @property
    def due(self) -> bool:
        return time.monotonic() > self.at if self.place == ANYWHERE else self.held.exists()


def kill_at_random(
    house: House, workers: Workers, indexers: int, chance: random.Random, kills: int, say: Callable[[str], None] = print
) -> Counter[str]:
    """SIGKILL so many times; then all run, and nothing fails on purpose. Returns how often at which place.

    Something must be produced all the while.
    """
    victims = {number: _start(house, workers, number, chance) for number in range(indexers)}
    done: Counter[str] = Counter()
    for kill in range(1, kills + 1):
        (number,) = wait_for(
            f"an indexer for kill {kill}",
            lambda: [n for n, victim in victims.items() if victim.due][:1],
            90,
            lambda: [(v, workers.status(n)) for n, v in victims.items()],
        )
        workers.kill(number)
        done[victims[number].place] += 1
        say(f"kill {kill}: indexer {number}, {victims[number].place}")
        if kill % A_BREATH == 0 or kill == kills:
            _breathe(house, workers, indexers)
            victims.clear()
        if kill < kills:
            missing = [n for n in range(indexers) if n not in victims or n == number]
            victims.update({n: _start(house, workers, n, chance) for n in missing})
    return done


def _start(house: House, workers: Workers, number: int, chance: random.Random) -> _Victim:
    """Start an indexer (again) that will stop at a place of its own; the others' are as they were."""
    if number in workers.numbers:
        workers.kill(number)
    place = chance.choice((*PLACES, ANYWHERE))
    held = house.home.path / f"{workers.id}-{uuid.uuid4().hex[:8]}.held"
    house.fail_at(workers.datasource, **({} if place == ANYWHERE else {place: f"hold:{held}"}))
    workers.start(number)
    house.fail_at(workers.datasource)
    return _Victim(place, held, time.monotonic() + chance.uniform(0.5, LONGEST_LIFE_S))


def _breathe(house: House, workers: Workers, indexers: int) -> None:
    """All run freely until something more is published."""
    for number in range(indexers):
        workers.kill(number)
    before = int(house.totals(workers.datasource)["published"])
    workers.start(*range(indexers))
    published(house, workers.datasource, before + 1)


def survive_kills(
    house: House,
    make_workers: Callable[[dict[str, Any], int], Workers],
    chance: random.Random,
    kills: int,
    say: Callable[[str], None] = print,
) -> tuple[str, int, Counter[str]]:
    """A share group's indexers under kills, until all is published: its datasource, how many records, the places."""
    topic, indexers = house.topic("kills"), 3
    workers = make_workers(house.spec(topic), indexers)
    stream = Endless(house, topic)
    done = kill_at_random(house, workers, indexers, chance, kills, say)
    records = stream.finish()
    published(house, topic, records, 180)
    return topic, records, done
