"""An imported dead letter, in the whole product: worker and beat import it, and a replay makes a row of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers


def newest_import(house: House, supervisor: str) -> Any:
    [found] = house.api("GET", f"/api/v1/supervisors/{supervisor}/dead-letters/")["imports"]
    return found


def test_a_record_of_another_program_becomes_a_row_once(house: House, make_workers: Callable[..., Workers]) -> None:
    """Nobody else shows that a replay reads records of a topic that its spec does not name."""
    topic, dead = house.topic(partitions=1), house.topic("connect-errors", partitions=1)
    house.produce(topic, numbered(0, 10))
    house.produce(dead, numbered(10, 15))
    spec = house.spec(topic)
    workers = make_workers(spec)
    workers.start(0)
    published(house, topic, 10)
    workers.finish(0)
    workers.close()
    house.api("POST", "/druid/indexer/v1/supervisor", {**spec, "suspended": True})
    house.api("POST", f"/api/v1/supervisors/{topic}/dead-letters/", {"topic": dead}, 202)
    wait_for("the import ends", lambda: not newest_import(house, topic)["running"])
    assert newest_import(house, topic)["counts"]["imported"] == 5
    body = {"mode": "ingest", "filter": {"state": "kept"}}
    [task] = house.api("POST", f"/api/v1/datasources/{topic}/quarantine/replay/", body)["tasks"]
    house.ended(task)
    found = house.api("GET", f"/api/v1/datasources/{topic}/quarantine/")["results"]
    assert {record["state"] for record in found} == {"stored"}
    totals = check_exactly_once(house, topic, range(15))
    assert (totals["polled"], totals["published"]) == (15, 15)
