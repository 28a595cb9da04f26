"""Formats, transforms and rollup through real Kafka and an indexer: what the decoder's own tests show, end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import datasketches
import pyarrow.parquet as pq

from tests.support.house import House
from tests.support.invariants import check_adds_up
from tests.support.records import published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

OWN_COLUMNS = ("shop", "kafka.key", "loud")
SENT_AT_MS = 1_748_790_000_000


def rows_of(house: House, datasource: str) -> list[dict[str, Any]]:
    """All rows of the datasource's segments."""
    paths = house.sql(
        "SELECT path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s",
        datasource,
    )
    return [row for (path,) in paths for row in pq.read_table(house.home.segments / path).to_pylist()]


def test_csv_in_kafkas_envelope_transformed_and_rolled_up(house: House, make_workers: Callable[..., Workers]) -> None:
    """Key, timestamp, header and topic become columns, an expression one more; equal rows of an hour become one, and
    every record is counted.
    """
    topic = house.topic("formats", partitions=2)
    records = 3_000
    for n in range(records):
        line = f"2025-06-01T{n % 3:02d}:00:{n % 60:02d}Z,shop {n % 2},{n}"
        house.producer.produce(
            topic,
            value=line.encode(),
            key=f"k{n % 2}".encode(),
            timestamp=SENT_AT_MS + n % 2,
            headers=[("origin", f"site {n % 2}".encode())],
        )
    for n in range(5):
        house.producer.produce(topic, value=f"no time,shop {n},1".encode(), key=b"bad")
    assert house.producer.flush(60) == 0
    spec = house.spec(topic, taskCount=1)
    spec["ioConfig"]["inputFormat"] = {
        "type": "kafka",
        "valueFormat": {"type": "csv", "columns": ["time", "shop", "amount"], "findColumnsFromHeader": False},
        "keyFormat": {"type": "csv", "columns": ["key"], "findColumnsFromHeader": False},
        "headerFormat": {"type": "string"},
    }
    spec["dataSchema"] |= {
        "dimensionsSpec": {
            "dimensions": [
                *OWN_COLUMNS,
                {"type": "long", "name": "kafka.timestamp"},
                "kafka.header.origin",
                "kafka.topic",
            ]
        },
        "transformSpec": {"transforms": [{"type": "expression", "name": "loud", "expression": "upper(shop)"}]},
        "metricsSpec": [
            {"type": "count", "name": "count"},
            {"type": "longSum", "name": "total", "fieldName": "amount"},
            {"type": "HLLSketchBuild", "name": "amounts", "fieldName": "amount", "lgK": 14},
            {"type": "quantilesDoublesSketch", "name": "spread", "fieldName": "amount"},
        ],
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True},
    }
    make_workers(spec).start(0)
    published(house, topic, 1)
    totals = settled(house, topic, records + 5)
    check_adds_up(totals)
    assert (totals["published"] + totals["rolled_up"], totals["unparseable"]) == (records, 5)
    rows = rows_of(house, topic)
    assert len(rows) == totals["published"] < records / 10
    assert sum(r["count"] for r in rows) == records
    assert sum(r["total"] for r in rows) == sum(range(records))
    amounts, spread = datasketches.hll_union(14), datasketches.quantiles_doubles_sketch(128)
    for row in rows:
        amounts.update(datasketches.hll_sketch.deserialize(row["amounts"]))
        spread.merge(datasketches.quantiles_doubles_sketch.deserialize(row["spread"]))
    assert amounts.get_lower_bound(3) <= records <= amounts.get_upper_bound(3)
    assert (spread.n, spread.get_min_value(), spread.get_max_value()) == (records, 0, records - 1)
    assert {tuple(r[name] for name in OWN_COLUMNS) for r in rows} == {
        (f"shop {n}", f"k{n}", f"SHOP {n}") for n in (0, 1)
    }
    assert {(r["kafka.key"], r["kafka.timestamp"], r["kafka.header.origin"], r["kafka.topic"]) for r in rows} == {
        (f"k{n}", SENT_AT_MS + n, f"site {n}", topic) for n in (0, 1)
    }
    assert {r["__time"].hour for r in rows} == {0, 1, 2}


def test_nested_json_flattened_with_faulty_fields(house: House, make_workers: Callable[..., Workers]) -> None:
    """A field that does not fit its type is null in a row that is stored, and counted."""
    topic = house.topic("nested", partitions=1)
    records = [
        {"at": {"ms": 1_748_736_000_000 + n}, "n": n if n % 10 else "ten", "tags": ["b", "a"]} for n in range(200)
    ]
    house.produce(topic, [json.dumps(r).encode() for r in records])
    spec = house.spec(topic, taskCount=1)
    spec["ioConfig"]["inputFormat"] = {
        "type": "json",
        "flattenSpec": {"fields": [{"type": "path", "name": "ms", "expr": "$.at.ms"}]},
    }
    spec["dataSchema"] |= {
        "timestampSpec": {"column": "ms", "format": "millis"},
        "dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}, "tags"]},
    }
    make_workers(spec).start(0)
    published(house, topic, 200)
    totals = house.totals(topic)
    check_adds_up(totals)
    assert totals["processed_with_error"] == 20
    rows = rows_of(house, topic)
    assert sorted(r["n"] for r in rows if r["n"] is not None) == [n for n in range(200) if n % 10]
    assert sum(r["n"] is None for r in rows) == 20
    assert all(r["tags"] == ["a", "b"] for r in rows)


def settled(house: House, datasource: str, records: int) -> dict[str, Any]:
    """The totals once so many records have been polled."""

    def all_of_them() -> dict[str, Any] | None:
        totals = house.totals(datasource)
        return totals if totals["polled"] >= records else None

    return wait_for(f"{records} records of {datasource}", all_of_them, 120, lambda: house.logs(datasource))
