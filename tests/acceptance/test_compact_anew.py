"""``compact`` tasks that write rows anew, of what Kafka's records have become, on real services."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pytest

from ingestion.segments import open_deep_storage
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published

FIRST, ALL = 9_000, 12_000  # seconds of 2025-06-01, a record each
_USED = """
    SELECT s.path, s.interval_end - s.interval_start FROM segments_segment s
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.used
"""


def compacted(house: House, datasource: str, **parts: Any) -> dict[str, Any]:
    """The report of a task that has succeeded."""
    day = {"type": "interval", "interval": "2025-06-01/P1D"}
    document = {"type": "compact", "dataSource": datasource, "ioConfig": {"type": "compact", "inputSpec": day}, **parts}
    task = house.submit(document)
    house.ended(task, seconds=180)
    found = house.api("GET", f"/druid/indexer/v1/task/{task}")["payload"]
    assert found == {**document, "id": task, "groupId": task}
    report: dict[str, Any] = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")["headgate"]["payload"]
    assert report["adds_up"] and report["optionsWithoutEffect"] == []
    return report


def stored(house: House, datasource: str) -> tuple[pd.DataFrame, set[float]]:
    """The rows in use, and how many hours long their segments' intervals are."""
    storage = open_deep_storage(house.environment["HEADGATE_DEEP_STORAGE"])
    used = house.sql(_USED, datasource)
    parts = []
    for path, _ in used:
        with storage.open(path) as file:
            parts.append(pd.read_parquet(io.BytesIO(file.read())))
    return pd.concat(parts, ignore_index=True), {length.total_seconds() / 3600 for _, length in used}


@pytest.mark.timeout(600)
def test_hours_become_a_day_and_then_rows_are_rolled_up(house: House) -> None:
    """Under Spark, over which rows are dealt out by their group."""
    topic = house.topic()
    spec = house.kafka_spec(topic)
    spec["dataSchema"]["granularitySpec"] |= {"segmentGranularity": "HOUR"}
    house.supervise(spec)
    house.produce(topic, numbered(0, FIRST))
    published(house, topic, FIRST)
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/suspend")
    check_exactly_once(house, topic, range(FIRST))

    report = compacted(house, topic, granularitySpec={"segmentGranularity": "DAY"})
    assert (report["polled"], report["published"]) == (FIRST, FIRST)
    assert stored(house, topic)[1] == {24}
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/resume")
    house.produce(topic, numbered(FIRST, ALL))
    published(house, topic, FIRST + ALL)
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/suspend")
    assert stored(house, topic)[1] == {1, 24}
    check_exactly_once(house, topic, range(ALL), written_anew=FIRST)

    by_hour = {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True}
    sums = [{"type": "longSum", "name": name, "fieldName": name} for name in ("n", "value")]
    metrics = [{"type": "count", "name": "rows"}, *sums]
    kept = {"dimensions": [{"name": "category"}]}
    report = compacted(house, topic, granularitySpec=by_hour, metricsSpec=metrics, dimensionsSpec=kept)
    table, lengths = stored(house, topic)
    assert (report["polled"], report["published"], report["rolled_up"]) == (ALL, len(table), ALL - len(table))
    wanted = pd.DataFrame({"n": range(ALL)}).assign(
        value=lambda t: 3 * t["n"], category=lambda t: "c" + (t["n"] % 7).astype(str), hour=lambda t: t["n"] // 3600
    )
    groups = wanted.groupby(["hour", "category"]).agg(rows=("n", "size"), n=("n", "sum"), value=("value", "sum"))
    assert sorted(table[["category", "rows", "n", "value"]].itertuples(index=False, name=None)) == sorted(
        groups.reset_index()[["category", "rows", "n", "value"]].itertuples(index=False, name=None)
    )
    assert lengths == {24}

    compacted(house, topic, granularitySpec={"queryGranularity": "DAY"})
    table, lengths = stored(house, topic)
    assert list(table.columns) == ["__time", "category", "rows", "n", "value"] and lengths == {24}
    by_category = wanted.groupby("category").agg(rows=("n", "size"), n=("n", "sum"), value=("value", "sum"))
    assert sorted(table[["category", "rows", "n", "value"]].itertuples(index=False, name=None)) == sorted(
        by_category.reset_index()[["category", "rows", "n", "value"]].itertuples(index=False, name=None)
    )
