"""A share group's task is stopped while it holds records."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers


def test_what_a_stopped_task_holds_goes_to_another(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 21 of the failure matrix: nothing of it is published, all is released, and delivered again at once.

    The lock is longer than is waited for: it is not its end that hands the records over.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, 1000))
    spec = house.spec(topic, lock_ms=60_000)
    house.fail_at(topic, decoded="sleep:10")
    first = make_workers(spec)
    first.start(0)
    wait_for("it holds records", lambda: getattr(first.status(0), "in_flight", 0), 60, lambda: first.status(0))
    house.proxy.set("refuse")
    house.api("POST", f"/api/v1/tasks/{first.id}/stop/", {"finish": False})
    assert first.ended(0) == ("ended", "")
    house.proxy.set("pass")
    house.fail_at(topic)
    assert house.totals(topic)["published"] == 0
    second = make_workers(spec)
    second.start(0)
    published(house, topic, 1000, 40)
    totals = check_exactly_once(house, topic, range(1000))
    assert totals["released"] > 0
    assert totals["redelivered"] >= totals["released"]
    assert totals["duplicates"] == 0
