"""A spec whose expression takes too long, through Kafka and Spark: the task says so and loses nothing."""

from __future__ import annotations

import json
from typing import Any

from tests.acceptance.test_formats_and_rollup import rows_of
from tests.support.house import House, wait_for
from tests.support.records import published
from tests.unit.test_decode_deadline import SLOW

RECORDS = 60
# What a single fetch brings takes far longer than a batch may, on faster machines, too.
SLOWER = " or ".join(SLOW.replace("500", str(500 - n)) for n in range(4))


def test_a_spec_that_is_too_slow_fails_its_task_and_is_mended(house: House) -> None:
    topic = house.topic("slow", partitions=1)
    records = ({"time": f"2025-06-01T00:00:{n:02d}Z", "n": n, "a": "a" * 60_000} for n in range(RECORDS))
    house.produce(topic, [json.dumps(r).encode() for r in records])
    spec = house.kafka_spec(topic)
    spec["dataSchema"] |= {"dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}, "found"]}}
    slow = {"type": "expression", "name": "found", "expression": SLOWER}
    quick = {**slow, "expression": "length(a)"}
    supervisor = house.supervise(_with(spec, slow))

    def told() -> bool:
        payload = house.api("GET", f"/druid/indexer/v1/supervisor/{supervisor}/status")["payload"]
        return any("Simplify the spec's expressions" in event["message"] for event in payload["recentErrors"])

    wait_for("the supervisor says why", told, 180, lambda: house.logs(topic))
    assert house.totals(topic)["published"] == 0
    house.supervise(_with(spec, quick))
    published(house, topic, RECORDS)
    rows = rows_of(house, topic)
    assert sorted((r["n"], r["found"]) for r in rows) == [(n, "60000") for n in range(RECORDS)]


def _with(spec: dict[str, Any], transform: dict[str, str]) -> dict[str, Any]:
    return {**spec, "dataSchema": {**spec["dataSchema"], "transformSpec": {"transforms": [transform]}}}
