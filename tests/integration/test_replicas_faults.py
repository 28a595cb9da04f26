"""Replicas under faults, on real services: two tasks read the same, one publishes, and either may die."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import always_whole, check_exactly_once
from tests.support.records import Endless, numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS = 5_000
Make = Callable[..., Workers]


def replicated(house: House, topic: str, **tuning: Any) -> dict[str, Any]:
    return house.kafka_spec(topic, replicas=2, tuning=tuning)


def pair(house: House, make_workers: Make, topic: str, **tuning: Any) -> list[Workers]:
    """Two replicas that read."""
    first = make_workers(replicated(house, topic, **tuning))
    both = [first, make_workers(replicated(house, topic, **tuning), owner=first.owner)]
    for workers in both:
        workers.start(0)
        workers.wait_for_status(0, "it reads", state="reading")
    return both


def publishes_of(house: House, workers: Workers) -> int:
    rows = house.sql("SELECT coalesce(sum(publishes), 0) FROM publishing_indexerfence WHERE task_id = %s", workers.id)
    return int(rows[0][0])


@pytest.mark.parametrize("place", ["decoded", "uploaded", "committed"])
def test_the_one_that_publishes_is_killed(house: House, make_workers: Make, place: str) -> None:
    """Row 1 of the failure matrix: the other replica reads already, and publishes what the dead one has not.

    Row 2 of the failure matrix: what the dead one has published, the other one drops.
    """
    topic = house.topic(partitions=2)
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, **{place: f"once:{held}:hold"})
    both = pair(house, make_workers, topic)
    pids = {workers.pid(0): workers for workers in both}
    with always_whole(house, topic):
        house.produce(topic, numbered(0, RECORDS))
        pid = wait_for(f"one stands at {place}", lambda: held.read_text() if held.exists() else "", 60)
        pids.pop(int(pid)).give_way()
        [(survivor, other)] = pids.items()
        house.produce(topic, numbered(RECORDS, 2 * RECORDS))
        published(house, topic, 2 * RECORDS)
    check_exactly_once(house, topic, range(2 * RECORDS))
    status = other.status(0)
    assert status is not None
    assert (status.pid, status.epoch) == (survivor, 1), "it was warm: nothing had to start"


def test_the_one_that_waits_is_killed(house: House, make_workers: Make) -> None:
    """Row 1 of the failure matrix: the other one does not notice; a replacement reads on from the stored offsets.

    Handed off as it comes.
    """
    topic = house.topic()
    as_it_comes = replicated(house, topic, intermediateHandoffPeriod=None)
    first = make_workers(as_it_comes)
    first.start(0)
    endless = Endless(house, topic)
    published(house, topic, 1)
    second = make_workers(as_it_comes, owner=first.owner)
    second.start(0)
    second.wait_for_status(0, "the second reads", state="reading")
    wait_for("it drops what the first has published", lambda: house.totals(topic)["redundant"], 60)
    second.give_way()
    third = make_workers(as_it_comes, owner=first.owner)
    third.start(0)
    third.wait_for_status(0, "the third reads", state="reading")
    records = endless.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))


def test_both_publish_at_once(house: House, make_workers: Make) -> None:
    """Row 4 of the failure matrix: one wins. The other drops what is settled, counts it as redundant, and publishes
    when the winner is gone.
    """
    topic = house.topic(partitions=2)
    house.fail_at(topic, uploaded="sleep:3")  # both have uploaded when the first of them publishes
    both = pair(house, make_workers, topic, intermediateHandoffPeriod="PT5S")  # one handoff has all of them
    house.produce(topic, numbered(0, RECORDS))
    published(house, topic, RECORDS)
    wait_for("the other one has noticed", lambda: house.totals(topic)["polled"] == 2 * RECORDS, 60)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert (totals["redundant"], totals["released"], totals["duplicates"]) == (RECORDS, 0, 0)
    winner, loser = sorted(both, key=lambda w: -publishes_of(house, w))
    assert publishes_of(house, loser) == 0
    winner.give_way()
    house.produce(topic, numbered(RECORDS, 2 * RECORDS))
    published(house, topic, 2 * RECORDS)
    check_exactly_once(house, topic, range(2 * RECORDS))
    assert publishes_of(house, loser) > 0
