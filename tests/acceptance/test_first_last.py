"""First and last values through Kafka, rollup, compaction and re-indexing: those that pandas finds in the records."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pandas as pd
import pytest

from ingestion.segments import open_deep_storage
from ingestion.specs.extents import EXTENTS
from tests.support.house import House
from tests.support.records import START
from tests.support.waiting import wait_for

PARTS, RECORDS = 6, 500
_USED = """
    SELECT s.path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""
_TAKEN = """
    SELECT sum(f.published + f.rolled_up) FROM segments_indexerfence f
    JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s
"""
_VALUES = {"long": "n", "double": "value", "string": "word"}
NAMED = {f"{kind}{which}": field for kind, field in _VALUES.items() for which in ("First", "Last")}


def records_of(part: int) -> list[dict[str, Any]]:
    """Of three hours, few of whose seconds have records at all: many are of one time."""
    dice = random.Random(part)
    made = []
    for n in range(part * RECORDS, (part + 1) * RECORDS):
        time = START + pd.Timedelta(seconds=dice.randrange(3) * 3600 + dice.randrange(8))
        held = {"n": n, "value": n / 8, "word": f"é{n}"}
        kept = {name: v for name, v in held.items() if dice.random() > 0.2}
        made.append({"time": time.isoformat(), "category": f"c{dice.randrange(3)}", **kept})
    return made


def pandas_says(records: list[dict[str, Any]], length: str) -> list[tuple[Any, ...]]:
    table = pd.DataFrame(records)
    table["at"] = pd.to_datetime(table["time"], utc=True)
    table["hour"] = table["at"].dt.floor(length)
    groups = table.sort_values("at", kind="stable").groupby(["hour", "category"])
    found = pd.DataFrame({"rows": groups.size()})
    for name, field in NAMED.items():
        found[name] = groups.nth(0 if name.endswith("First") else -1).set_index(["hour", "category"])[field]
    return in_order(found.reset_index().rename(columns={"hour": "__time"}))


def in_order(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    table = table[["__time", "category", "rows", *NAMED]].astype({"longFirst": float, "longLast": float})
    table["__time"] = pd.to_datetime(table["__time"], utc=True).dt.as_unit("ms")
    plain = table.astype(object)
    return sorted(plain.where(plain.notna(), None).itertuples(index=False, name=None), key=repr)


def stored(house: House, datasource: str) -> list[pd.DataFrame]:
    """The files in use, without what is hidden."""
    storage = open_deep_storage(house.environment["HEADGATE_DEEP_STORAGE"])
    tables = []
    for (path,) in house.sql(_USED, datasource):
        with storage.open(path) as file:
            tables.append(pd.read_parquet(io.BytesIO(file.read())))
    assert all(set(EXTENTS) <= set(table.columns) for table in tables)
    return [t.drop(columns=list(EXTENTS)) for t in tables]


def taken(house: House, datasource: str, records: int) -> None:
    """Wait until so many have become rows."""
    wait_for(f"{records} are published", lambda: house.sql(_TAKEN, datasource) == [(records,)], 120)


def compacted(house: House, datasource: str, **parts: Any) -> dict[str, Any]:
    """The report of a task that has succeeded."""
    day = {"type": "interval", "interval": "2025-06-01/P1D"}
    document = {"type": "compact", "dataSource": datasource, "ioConfig": {"type": "compact", "inputSpec": day}, **parts}
    task = house.submit(document)
    house.ended(task, seconds=240)
    report: dict[str, Any] = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")["headgate"]["payload"]
    assert report["adds_up"], report
    return report


@pytest.mark.timeout(900)
def test_first_and_last_stay_those_of_all_records(house: House) -> None:
    """Under Spark, over which a compact task deals rows out in no order."""
    topic = house.topic(partitions=1)
    spec = house.kafka_spec(topic)
    metrics = [{"type": name, "name": name, "fieldName": field} for name, field in NAMED.items()]
    spec["dataSchema"] |= {
        "dimensionsSpec": {"dimensions": ["category"]},
        "metricsSpec": [{"type": "count", "name": "rows"}, *metrics],
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True},
    }
    house.supervise(spec)
    given: list[dict[str, Any]] = []
    for part in range(PARTS):
        some = records_of(part)
        house.produce(topic, (json.dumps(r).encode() for r in some))
        given += some
        taken(house, topic, len(given))
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/suspend")
    apart = stored(house, topic)
    assert len(apart) > 1
    shown = house.api("GET", f"/api/v1/datasources/{topic}/")
    assert not set(EXTENTS) & {c["name"] for c in shown["columns"]}

    report = compacted(house, topic)
    [table] = stored(house, topic)
    assert report["published"] == len(table) < sum(map(len, apart))
    assert in_order(table) == pandas_says(given, "h")
    compacted(house, topic, granularitySpec={"queryGranularity": "DAY"})
    [table] = stored(house, topic)
    assert in_order(table) == pandas_says(given, "D")
