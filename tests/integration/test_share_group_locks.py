"""A share group's lock ends while an indexer has the records in its hands."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS = 500


def test_a_lock_ends_before_the_publish(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 16 of the failure matrix: another indexer gets the records and publishes them; the first one, which read
    them before they were settled, is refused by the transaction, and drops all of them.

    No alarm is raised: after its lock they were another's by right.
    """
    topic = house.topic(partitions=1)
    house.produce(topic, numbered(0, RECORDS))
    held = house.home.path / f"{topic}.held"
    workers = make_workers(house.spec(topic, lock_ms=5000, consumersPerIndexer=1), 2)
    house.fail_at(topic, uploaded=f"pause:{held}")
    workers.start(0)
    wait_for("the first has uploaded", held.exists, 60, lambda: workers.status(0))
    house.fail_at(topic)
    workers.start(1)
    published(house, topic, RECORDS)
    held.unlink()
    wait_for("the first has noticed", lambda: house.totals(topic)["duplicates"], 60, lambda: workers.status(0))
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert (totals["polled"], totals["duplicates"], totals["redelivered"]) == (2 * RECORDS, RECORDS, RECORDS)
    by_number = house.sql(
        "SELECT number, published, duplicates FROM publishing_indexerfence WHERE task_id = %s ORDER BY number",
        workers.id,
    )
    assert by_number == [(0, 0, RECORDS), (1, RECORDS, 0)]
    assert house.api("GET", f"/api/v1/datasources/{topic}/events/")["results"] == []
