"""What a spec says works in the indexers, whatever the source: many options at once, on one topic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

from tests.support.house import House
from tests.support.invariants import check_adds_up
from tests.support.lanes import LANES, lane_spec
from tests.support.waiting import wait_for
from tests.support.workers import Workers

GOOD, ITEMS = 4_000, 300
FILTERED, LATE = 40, 30
MALFORMED = 5
TOMBSTONES = 7
POLLED = GOOD + FILTERED + LATE + MALFORMED + TOMBSTONES
SEGMENT_ROWS = 250
Row = tuple[str, str, str]  # hour, shop, item


def good(n: int) -> dict[str, Any]:
    return {
        "time": f"2025-06-{1 + n % 2:02d}T{n % 4:02d}:{n % 60:02d}:00Z",
        "shop": f"s{n % 7}",
        "item": f"i{n % ITEMS}",
        "value": n,
    }


def all_records() -> list[bytes | None]:
    """Those that are left out stand among the others."""
    records: list[bytes | None] = [json.dumps(good(n)).encode() for n in range(GOOD)]
    for n in range(FILTERED):
        records.insert(17 * n, json.dumps({**good(n), "shop": "closed"}).encode())
    for n in range(LATE):
        records.insert(31 * n, json.dumps({**good(n), "time": "2025-05-31T23:59:59Z"}).encode())
    for n in range(MALFORMED):
        records.insert(101 * n, b'{"time": broken')
    for n in range(TOMBSTONES):
        records.insert(53 * n, None)
    return records


def spec_with_much(house: House, lane: str, topic: str, datasource: str) -> dict[str, Any]:
    tuning = {
        "maxRowsPerSegment": SEGMENT_ROWS,
        "maxTotalRows": 300,
        "maxRowsInMemory": 100,
        "maxParseExceptions": MALFORMED,
        "intermediateHandoffPeriod": "PT1H",
    }
    late = "2025-06-01T00:00:00Z"
    spec = lane_spec(house, lane, topic, datasource, tuning, lateMessageRejectionStartDateTime=late)
    spec["dataSchema"] |= {
        "dimensionsSpec": {"dimensions": ["shop", "item"]},
        "transformSpec": {
            "filter": {"type": "not", "field": {"type": "selector", "dimension": "shop", "value": "closed"}}
        },
        "metricsSpec": [
            {"type": "count", "name": "count"},
            {"type": "longSum", "name": "sum", "fieldName": "value"},
            {"type": "longMax", "name": "most", "fieldName": "value"},
        ],
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True},
    }
    return spec


def test_many_options_at_once(house: House, make_workers: Callable[..., Workers]) -> None:
    """Rollup, a filter, late records, poison within its limit, small segments, spilling: the same from every source."""
    topic = house.topic(partitions=2)
    records = all_records()
    for partition in (0, 1):
        house.produce(topic, records[partition::2], partition=partition)
    lanes = {f"{topic}-{lane}": lane for lane in LANES}
    running = {}
    for name, lane in lanes.items():
        running[name] = make_workers(spec_with_much(house, lane, topic, name))
        running[name].start(0)
    for name, workers in running.items():
        wait_for("it hands off by the number of rows", lambda name=name: segments_of(house, name), 60)
        wait_for(
            "all is polled",
            lambda name=name, workers=workers: in_all(house, name, workers) >= POLLED,
            60,
            lambda workers=workers: workers.status(0),
        )
        workers.finish(0)
        totals = house.totals(name)
        check_adds_up(totals)
        assert (totals["filtered"], totals["outside_window"], totals["unparseable"]) == (FILTERED, LATE, MALFORMED)
        assert (totals["tombstones"], totals["thrown_away"]) == (TOMBSTONES, FILTERED + LATE + TOMBSTONES)
        assert totals["published"] + totals["rolled_up"] == GOOD
        assert totals["rolled_up"] > 0
        check_rows(house, name)


def in_all(house: House, datasource: str, workers: Workers) -> int:
    """Records that are published or in hand."""
    status, totals = workers.status(0), house.totals(datasource)
    published = int(totals["polled"])
    if status is None or status.publishes != totals["publishes"]:
        return published  # the status is from before the last publish: some that it holds would count twice
    return published + status.in_flight


def segments_of(house: House, datasource: str) -> list[tuple[str, int]]:
    """(path, rows)."""
    return house.sql(
        "SELECT s.path, s.rows FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id"
        " WHERE d.name = %s AND s.used",
        datasource,
    )


def check_rows(house: House, datasource: str) -> None:
    """What the rows of all segments say together is what was sent."""
    segments = segments_of(house, datasource)
    assert len(segments) > 4 and all(rows <= SEGMENT_ROWS for _, rows in segments), segments
    counts, sums, most = Counter[Row](), Counter[Row](), Counter[Row]()
    for path, _ in segments:
        for row in pq.read_table(house.home.segments / path).to_pylist():
            key = (row["__time"].isoformat(), row["shop"], row["item"])
            counts[key] += row["count"]
            sums[key] += row["sum"]
            most[key] = max(most[key], row["most"])
    wanted_counts, wanted_sums, wanted_most = Counter[Row](), Counter[Row](), Counter[Row]()
    for n in range(GOOD):
        key = (f"2025-06-{1 + n % 2:02d}T{n % 4:02d}:00:00+00:00", f"s{n % 7}", f"i{n % ITEMS}")
        wanted_counts[key] += 1
        wanted_sums[key] += n
        wanted_most[key] = n
    assert (counts, sums, most) == (wanted_counts, wanted_sums, wanted_most)
