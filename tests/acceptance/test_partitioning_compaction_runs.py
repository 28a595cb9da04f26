"""Automatic compaction by ranges, on real services: each interval once, and again when something late has come."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.house import House
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

CONFIG = "/druid/coordinator/v1/config/compaction"
RECORDS, LATE = 9_000, 9_200  # seconds of 2025-06-01, a record each: three hours
_USED = """
    SELECT s.path, s.interval_start, s.task_id, s.rows FROM segments_segment s
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.used ORDER BY s.interval_start
"""
_LONG_AGO = """
    UPDATE segments_segment s SET created_at = s.created_at - interval '1 hour' FROM datasources_datasource d
    WHERE d.id = s.datasource_id AND d.name = %s AND s.used RETURNING s.id
"""
_JOBS = """
    SELECT j.id, j.state, j.error FROM compaction_job j JOIN datasources_datasource d ON d.id = j.datasource_id
    WHERE d.name = %s AND j.anew IS NOT NULL ORDER BY j.created_at
"""


def awaiting(house: House, datasource: str) -> int:
    status = house.api("GET", f"/druid/coordinator/v1/compaction/status?dataSource={datasource}")["latestStatus"]
    return int(status[0]["intervalCountAwaitingCompaction"])


def written_by(house: House, datasource: str) -> dict[Any, set[str]]:
    """By interval, whose its segments are."""
    found: dict[Any, set[str]] = {}
    for _, start, task, _ in house.sql(_USED, datasource):
        found.setdefault(start, set()).add(task)
    return found


def check_disjoint(house: House, datasource: str, column: str, rows: int) -> None:
    """The statistics of each interval's files tell them apart; no row is lost."""
    deep = Path(house.environment["HEADGATE_DEEP_STORAGE"])
    ends: dict[Any, list[tuple[int, int]]] = {}
    for path, start, _, _ in house.sql(_USED, datasource):
        meta = pq.ParquetFile(deep / path).metadata
        place = meta.schema.to_arrow_schema().get_field_index(column)
        groups = [meta.row_group(n).column(place).statistics for n in range(meta.num_row_groups)]
        ends.setdefault(start, []).append((min(g.min for g in groups), max(g.max for g in groups)))
    for of_interval in ends.values():
        mine = sorted(of_interval)
        assert len(mine) > 1 and all(before[1] < after[0] for before, after in pairwise(mine)), mine
    assert sum(held for *_, held in house.sql(_USED, datasource)) == rows


def quiet(house: House, datasource: str) -> None:
    assert house.sql(_LONG_AGO, datasource)


@pytest.mark.timeout(1200)
def test_intervals_are_partitioned_once_and_a_late_append_makes_one_pending_again(house: House, tmp_path: Path) -> None:
    """Row 32 of the failure matrix: a process is killed that has written an interval's files; the others go on.

    Under Spark, which runs the jobs side by side.
    """
    topic = house.topic()
    spec = house.kafka_spec(topic)
    spec["dataSchema"]["granularitySpec"] |= {"segmentGranularity": "HOUR"}
    house.supervise(spec)
    house.produce(topic, numbered(0, RECORDS))
    published(house, topic, RECORDS)
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/suspend")

    ranges = {"type": "range", "partitionDimensions": ["n"], "targetRowsPerSegment": 1_000}
    house.api("POST", CONFIG, {"dataSource": topic, "tuningConfig": {"partitionsSpec": ranges}}, expect=200)
    assert awaiting(house, topic) == 3
    held = tmp_path / "written"
    house.fail_at(f"{topic}/compaction", written=f"hold_once:{held}")
    quiet(house, topic)
    wait_for("a job has written its files", held.exists, 240, lambda: str(house.sql(_JOBS, topic)))
    os.kill(int(held.read_text()), signal.SIGKILL)
    wait_for("all is partitioned", lambda: awaiting(house, topic) == 0, 420, lambda: str(house.sql(_JOBS, topic)))
    jobs = house.sql(_JOBS, topic)
    assert sorted(state for _, state, _ in jobs) == ["done", "done", "done", "failed"], jobs
    done = sorted(job for job, state, _ in jobs if state == "done")
    assert sorted(next(iter(by)) for by in written_by(house, topic).values()) == done
    check_disjoint(house, topic, "n", RECORDS)

    quiet(house, topic)  # and still there is nothing to do
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/resume")
    house.produce(topic, numbered(RECORDS, LATE))
    published(house, topic, LATE)
    house.api("POST", f"/druid/indexer/v1/supervisor/{topic}/suspend")
    assert awaiting(house, topic) == 1
    assert house.sql(_JOBS, topic) == jobs
    quiet(house, topic)
    wait_for("it is partitioned again", lambda: awaiting(house, topic) == 0, 240, lambda: str(house.sql(_JOBS, topic)))
    assert len(house.sql(_JOBS, topic)) == 5
    check_disjoint(house, topic, "n", LATE)
