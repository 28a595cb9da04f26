"""Segments of running ingestion are merged by the compaction application, on real services, whatever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, published
from tests.support.waiting import wait_for

CONFIG = "/druid/coordinator/v1/config/compaction"
_JOBS = """
    SELECT j.id, j.state, j.attempt, j.error, j.rows_before, j.rows_after, cardinality(j.inputs), j.segments_after
    FROM compaction_job j JOIN datasources_datasource d ON d.id = j.datasource_id
    WHERE d.name = %s ORDER BY j.created_at
"""
_LIVE = """
    SELECT count(*) FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""
OPEN = ("waiting", "running")
_APPLICATION = "SELECT id FROM tasks_resident WHERE ended_at IS NULL"


@pytest.fixture(autouse=True)
def _no_application_stays(house: House) -> Iterator[None]:
    yield
    for (application,) in house.sql(_APPLICATION):
        house.kill_application(application)
    wait_for("the application is known to be gone", lambda: not house.sql(_APPLICATION), 60)


def said(house: House, datasource: str) -> str:
    logs = [p.read_text(errors="replace")[-3000:] for p in sorted(house.home.tasks.glob("compaction_*/spark.log"))[-1:]]
    return f"{house.sql(_JOBS, datasource)} {house.sql('SELECT id, error, ended_at FROM tasks_resident')} {logs}"


def done(house: House, datasource: str) -> bool:
    return any(row[1] == "done" for row in house.sql(_JOBS, datasource))


@pytest.mark.timeout(900)
def test_a_running_share_groups_segments_become_few_whatever_is_killed(house: House, tmp_path: Path) -> None:
    """Row 32 of the failure matrix: the merging process is killed with its files written, then the application with
    a replace committed and unheard. Row 27 of the failure matrix: records come all the time.
    Under Spark, whose driver hands out merges beside ingestion.
    """
    topic = house.topic()
    held = {place: tmp_path / place for place in ("written", "replaced")}
    house.fail_at(f"{topic}/compaction", **{place: f"once:{file}:hold" for place, file in held.items()})
    house.supervise(house.spec(topic, taskCount=1))
    house.running_task(topic)
    house.api("POST", CONFIG, {"dataSource": topic, "taskPriority": 30}, expect=200)
    stream = Endless(house, topic)

    wait_for("a merge has written its files", held["written"].exists, 180, lambda: said(house, topic))
    assert not done(house, topic)
    os.kill(int(held["written"].read_text()), signal.SIGKILL)
    wait_for("a replace has committed", held["replaced"].exists, 180, lambda: said(house, topic))
    [(application,)] = house.sql(_APPLICATION)
    assert house.kill_application(application)
    wait_for("the application was found dead", lambda: house.sql(_APPLICATION) != [(application,)], 60)
    records = stream.finish()
    published(house, topic, records)

    progress = house.api("GET", f"/druid/coordinator/v1/compaction/progress?dataSource={topic}")
    assert progress["remainingSegmentSize"] >= 0
    house.api("DELETE", f"{CONFIG}/{topic}", expect=200)
    wait_for("no merge is open", lambda: {row[1] for row in house.sql(_JOBS, topic)}.isdisjoint(OPEN), 120)

    jobs = house.sql(_JOBS, topic)
    assert "failed" in {state for _, state, *_ in jobs}, jobs
    ended = [row for row in jobs if row[1] == "done"]
    assert ended and all(before == after and made < read for *_, before, after, read, made in ended), jobs
    [(live,)] = house.sql(_LIVE, topic)
    shown = house.api("GET", f"/api/v1/datasources/{topic}/")
    assert shown["segments"] == live and shown["rows"] == records
    check_exactly_once(house, topic, range(records))
