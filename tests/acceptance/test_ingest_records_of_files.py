"""Quarantined records of files are ingested with a mended spec, each once, whatever is killed. On real services."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.house import House
from tests.support.waiting import wait_for

START_MS = 1_735_689_600_000  # 2025-01-01
LINES, EACH = 1_500, 2  # every so many lines one has its time as a text; more are bad than are read at once
BROKEN = 7  # lines that are no JSON whatever the spec says
LATE = LINES // EACH
_BY_STATE = """
    SELECT q.state, count(*) FROM segments_quarantinedrecord q
    JOIN datasources_datasource d ON d.id = q.datasource_id WHERE d.name = %s GROUP BY 1 ORDER BY 1
"""
_PATHS = """
    SELECT s.path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""


def write(folder: Path) -> None:
    """A CSV file: its columns stand in its first line alone."""
    folder.mkdir()
    lines = ["t,n,name"]
    for n in range(LINES):
        ms = START_MS + n * 1_000
        at = f"2025-01-01 {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}" if n % EACH else str(ms)
        lines.append(f'{at},{n},"a, {n}"')
    lines += [f'never,{n},"' for n in range(BROKEN)]
    (folder / "a.csv").write_text("\n".join(lines) + "\n")


def spec(house: House, datasource: str, time_format: str = "millis") -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "t", "format": time_format},
                "dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}, "name"]},
                "granularitySpec": {"segmentGranularity": "HOUR", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "local", "baseDir": str(house.input / datasource), "filter": "*.csv"},
                "inputFormat": {"type": "csv", "findColumnsFromHeader": True},
            },
            "tuningConfig": {"type": "index_parallel", "maxNumConcurrentSubTasks": 2},
        },
    }


def rows(house: House, datasource: str) -> list[tuple[int, int, str]]:
    """Time, number and name of each, sorted, as they stand in the files that are in use."""
    deep = Path(house.environment["HEADGATE_DEEP_STORAGE"])
    found: list[tuple[int, int, str]] = []
    for (path,) in house.sql(_PATHS, datasource):
        table = pq.read_table(deep / path)
        times = table.column("__time").cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        found += zip(times, table.column("n").to_pylist(), table.column("name").to_pylist(), strict=True)
    return sorted(found)


def expected(numbers: range) -> list[tuple[int, int, str]]:
    return [(START_MS + n * 1_000, n, f"a, {n}") for n in numbers]


def replay(house: House, datasource: str, expect: int | None = None, **more: Any) -> Any:
    body = {"mode": "ingest", "filter": {"state": "kept"}, **more}
    return house.api("POST", f"/api/v1/datasources/{datasource}/quarantine/replay/", body, expect)


def books(house: House, datasource: str) -> tuple[int, int, int, int]:
    totals = house.totals(datasource)
    return totals["polled"], totals["published"], totals["unparseable"], totals["quarantined"]


@pytest.fixture
def poisoned(house: House) -> tuple[str, str]:
    """A datasource, and the batch task that has left records in its quarantine."""
    name = house.make_topic(f"ingest-files-{os.urandom(3).hex()}")
    write(house.input / name)
    task = house.submit(spec(house, name))
    house.ended(task)
    assert house.sql(_BY_STATE, name) == [("kept", LATE + BROKEN)], house.logs(name)
    assert rows(house, name) == expected(range(0, LINES, EACH))
    (house.input / name / "a.csv").unlink()  # nothing reads it again
    return name, task


@pytest.mark.timeout(900)
def test_a_mended_spec_ingests_what_is_kept_each_once(house: House, poisoned: tuple[str, str]) -> None:
    """Row 37 of the failure matrix, with nothing killed: a double submit, and what fails again.

    A batch task of Spark leaves the records; replays are processes of their own.
    """
    name, task = poisoned
    report = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")
    bad = LATE + BROKEN
    assert books(house, name) == (LINES + BROKEN, LINES - LATE, bad, bad)
    [again] = replay(house, name)["tasks"]
    replay(house, name, expect=409)  # a double click
    house.ended(again)
    assert house.sql(_BY_STATE, name) == [("kept", bad)], "the spec is as it was: they are as bad as they were"
    assert books(house, name) == (LINES + BROKEN, LINES - LATE, bad, bad)

    [mended] = replay(house, name, spec=spec(house, name, "auto"))["tasks"]
    house.ended(mended)
    assert house.sql(_BY_STATE, name) == [("kept", BROKEN), ("stored", LATE)]
    assert rows(house, name) == expected(range(LINES))
    assert books(house, name) == (LINES + BROKEN, LINES, BROKEN, BROKEN)
    kept = house.api("GET", f"/api/v1/datasources/{name}/quarantine/?state=kept")["results"]
    assert {(r["task"], r["reason"]) for r in kept} == {(mended, "unparseable")}
    assert all("not CSV" in r["error"] for r in kept), kept
    now = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")
    assert now["ingestionStatsAndErrors"] == report["ingestionStatsAndErrors"]


@pytest.mark.timeout(900)
def test_a_replay_that_is_killed_stores_nothing_twice_and_loses_nothing(
    house: House, poisoned: tuple[str, str], tmp_path: Path
) -> None:
    """Row 37 of the failure matrix: killed before and after its first publish; then an answer is lost.

    A batch task of Spark leaves the records.
    """
    name, _ = poisoned
    mended = spec(house, name, "auto")
    for place, stored in (("written", 0), ("published", 500)):
        held = tmp_path / place
        house.fail_at(f"{name}/batch", **{place: f"hold:{held}"})
        [task] = replay(house, name, spec=mended)["tasks"]
        wait_for(f"the replay is at {place}", held.exists, 60, lambda: house.logs(name))
        house.fail_at(f"{name}/batch")
        purged = house.api("POST", f"/api/v1/datasources/{name}/quarantine/purge/", {"filter": {"state": "replaying"}})
        assert purged == {"records": 0}, "what a replay holds is not purged"
        assert house.kill_application(task)
        house.ended(task, "FAILED")
        left = [("kept", LATE + BROKEN - stored)] + ([("stored", stored)] if stored else [])
        assert house.sql(_BY_STATE, name) == left
    house.proxy.set("lose_answer")
    [task] = replay(house, name, spec=mended)["tasks"]
    wait_for("an answer was lost", lambda: house.proxy.hits, 60, lambda: house.logs(name))
    house.proxy.set("pass")
    house.ended(task)
    assert house.sql(_BY_STATE, name) == [("kept", BROKEN), ("stored", LATE)]
    assert rows(house, name) == expected(range(LINES))
    assert books(house, name) == (LINES + BROKEN, LINES, BROKEN, BROKEN)
