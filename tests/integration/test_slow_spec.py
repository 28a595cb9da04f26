"""A spec whose expression takes too long, read from Kafka: the task ends for good and says so, and loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

from tests.support.house import House
from tests.support.records import published
from tests.support.workers import Workers
from tests.unit.test_decode_deadline import SLOW, slow_length

RECORDS = 60


def test_a_spec_that_is_too_slow_fails_its_task_and_is_mended(
    house: House, make_workers: Callable[..., Workers]
) -> None:
    topic = house.topic("slow", partitions=1)
    text = "a" * slow_length(seconds=0.6)  # a good part of what a whole batch may take
    records = ({"time": f"2025-06-01T00:00:{n:02d}Z", "n": n, "a": text} for n in range(RECORDS))
    house.produce(topic, [json.dumps(r).encode() for r in records])
    spec = house.kafka_spec(topic)
    spec["dataSchema"] |= {"dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}, "found"]}}
    slow = make_workers(_with(spec, SLOW), owner="one")
    slow.start(0)
    how, reason = slow.ended(0, 150)
    assert (how, "Simplify the spec's expressions" in reason) == ("TooSlow", True), reason
    slow.close()
    assert house.totals(topic)["published"] == 0
    make_workers(_with(spec, "length(a)"), owner="one").start(0)
    published(house, topic, RECORDS)
    assert rows_of(house, topic) == [(n, str(len(text))) for n in range(RECORDS)]


def rows_of(house: House, datasource: str) -> list[tuple[int, str]]:
    """Number and length of each row that is stored, sorted."""
    paths = house.sql(
        "SELECT path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s",
        datasource,
    )
    rows = [row for (path,) in paths for row in pq.read_table(house.home.segments / path).to_pylist()]
    return sorted((row["n"], row["found"]) for row in rows)


def _with(spec: dict[str, Any], expression: str) -> dict[str, Any]:
    transform = {"type": "expression", "name": "found", "expression": expression, "language": "sql"}
    return {**spec, "dataSchema": {**spec["dataSchema"], "transformSpec": {"transforms": [transform]}}}
