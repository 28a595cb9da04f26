"""A field whose type changes from segment to segment: the datasource's column holds them all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import duckdb

from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segments
from tests.support.house import House
from tests.support.records import published
from tests.support.workers import Workers

VALUES = [1, 2.5, "three", {"four": [4]}]


def test_a_field_is_long_then_double_then_text_then_an_object(
    house: House, make_workers: Callable[..., Workers]
) -> None:
    """Each in a segment of its own. Older segments are read in the type that the schema has come to."""
    topic = house.topic(partitions=1)
    make_workers(house.kafka_spec(topic, tuning={"maxTotalRows": 1})).start(0)
    shown = []
    for number, value in enumerate(VALUES, 1):
        record: dict[str, Any] = {"time": "2025-06-01", "n": number, "v": value}
        house.produce(topic, [json.dumps(record | ({"gone": True} if number == 1 else {})).encode()])
        published(house, topic, number)
        columns = {c["name"]: c for c in house.api("GET", f"/api/v1/datasources/{topic}/")["columns"]}
        shown.append((columns["v"]["type"], columns["v"]["types"]))
    assert shown == [
        ("long", ["long"]),
        ("double", ["double", "long"]),
        ("string", ["double", "long", "string"]),
        ("json", ["double", "json", "long", "string"]),
    ]
    assert (columns["n"]["type"], columns["n"]["segments"]) == ("long", 4)
    assert (columns["gone"]["type"], columns["gone"]["segments"]) == ("boolean", 1)
    segments = house.api("GET", f"/api/v1/datasources/{topic}/segments/")["results"]
    assert [s["rows"] for s in segments] == [1] * 4
    rows = duckdb.from_arrow(read_segments(LocalStorage(house.home.segments), [s["path"] for s in segments]))
    assert dict(zip(rows.columns, map(str, rows.types), strict=True))["v"] == "JSON"
    assert rows.order("n").project("v, gone").fetchall() == [
        ("1", True),
        ("2.5", None),
        ('"three"', None),
        ('{"four":[4]}', None),
    ]
