"""A pattern of topics under Spark: three topics into one datasource, one of which comes later, each record once."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for


@pytest.mark.timeout(600)
def test_three_topics_one_of_which_comes_later(house: House) -> None:
    """Under Spark, since each topic has an application of its own."""
    stem = f"stem{uuid.uuid4().hex[:8]}"
    for first, last in ((0, "a"), (100, "b")):
        house.produce(house.make_topic(f"{stem}-{last}", partitions=2), numbered(first, first + 100))
    spec = house.kafka_spec(stem, topicPattern=f"{stem}-.*", period="PT1S")
    del spec["ioConfig"]["topic"]
    supervisor = house.supervise(spec)
    published(house, stem, 200)
    house.produce(house.make_topic(f"{stem}-c", partitions=1), numbered(200, 300))
    published(house, stem, 300)
    totals = check_exactly_once(house, stem, range(300))

    def all_settled() -> dict[str, Any] | None:
        payload: dict[str, Any] = house.api("GET", f"/druid/indexer/v1/supervisor/{supervisor}/status")["payload"]
        return payload if payload["aggregateLag"] == 0 and len(payload["minimumLag"]) == 5 else None

    payload = wait_for("nothing is behind", all_settled, 30)
    assert (payload["state"], len(payload["activeTasks"])) == ("RUNNING", 3)
    assert set(payload["latestOffsets"]) == {f"{stem}-{t}" for t in ("a:0", "a:1", "b:0", "b:1", "c:0")}
    of_all = house.api("GET", f"/api/v1/supervisors/{supervisor}/")["totals"]
    assert (of_all["published"], of_all["polled"]) == (300, totals["polled"])
