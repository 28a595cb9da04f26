"""Files become segments, once, whatever is killed; what is overwritten goes in the same moment. On real services."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.house import House
from tests.support.waiting import wait_for

DAY_MS = 86_400_000
START_MS = 1_735_689_600_000  # 2025-01-01
_USED = """
    SELECT s.path, s.version, s.interval_start, s.partition_num FROM segments_segment s
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.used
"""


def table(seed: int, rows: int, first_day: int = 0, days: int = 3) -> pd.DataFrame:
    dice = random.Random(seed)
    return pd.DataFrame(
        {
            "t": [START_MS + first_day * DAY_MS + dice.randrange(days * DAY_MS) for _ in range(rows)],
            "page": [dice.choice(["main", "öther", "a,b", 'in "quotes"', None]) for _ in range(rows)],
            "n": range(seed * 1_000_000, seed * 1_000_000 + rows),
        }
    )


def spec(house: House, datasource: str, **io_config: Any) -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "t", "format": "millis"},
                "dimensionsSpec": {"dimensions": ["page", {"name": "n", "type": "long"}]},
                "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "local", "baseDir": str(house.input / datasource), "filter": "*.csv"},
                "inputFormat": {"type": "csv", "findColumnsFromHeader": True},
                **io_config,
            },
            "tuningConfig": {
                "type": "index_parallel",
                "maxNumConcurrentSubTasks": 2,
                "maxRowsPerSegment": 10_000,  # fewer than an interval has: several write one
                "splitHintSpec": {"type": "maxSize", "maxSplitSize": 400_000},
            },
        },
    }


def write(house: House, datasource: str, name: str, rows: pd.DataFrame) -> None:
    folder = house.input / datasource
    folder.mkdir(exist_ok=True)
    rows.to_csv(folder / name, index=False)


def stored(house: House, datasource: str) -> pd.DataFrame:
    """What is in use now, as it was written."""
    deep = Path(house.environment["HEADGATE_DEEP_STORAGE"])
    found = pd.concat(pd.read_parquet(deep / path) for path, *_ in house.sql(_USED, datasource))
    t = (found["__time"].dt.as_unit("ms").astype("int64")).rename("t")
    return _in_order(pd.concat([t, found[["page", "n"]]], axis=1))


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values("n").reset_index(drop=True).astype({"page": "object"})


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    one, other = (_in_order(rows).fillna({"page": ""}) for rows in (one, other))
    return len(one) == len(other) and bool((one == other).all(axis=None))


@pytest.mark.timeout(900)
def test_files_are_stored_once_whatever_is_killed(house: House, tmp_path: Path) -> None:
    """Row 34 of the failure matrix: a process that has read its split is killed, then one that has written its part;
    the publish's answer is lost. Under Spark, which runs a killed process's part anew.
    """
    name = house.make_topic(f"batch-{os.getpid()}")
    frames = [table(seed, 20_000) for seed in (1, 2)]
    for seed, rows in enumerate(frames):
        write(house, name, f"{seed}.csv", rows)
    (house.input / name / "link.csv").symlink_to("/etc/passwd")
    held = {place: tmp_path / place for place in ("read", "bin_written")}
    house.fail_at(f"{name}/batch", **{place: f"hold_once:{file}" for place, file in held.items()})
    house.proxy.set("lose_answer")
    task = house.submit(spec(house, name))
    for place in held:
        wait_for(place, held[place].exists, 120, lambda: house.logs(name))
        os.kill(int(held[place].read_text()), signal.SIGKILL)
    wait_for("the publish has been sent", lambda: house.proxy.hits, 90, lambda: house.logs(name))
    house.ended(task)
    assert same(stored(house, name), pd.concat(frames))
    report = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")
    stats = report["ingestionStatsAndErrors"]["payload"]["rowStats"]["totals"]["buildSegments"]
    assert (stats["processed"], stats["unparseable"], stats["thrownAway"]) == (40_000, 0, 0)
    shown = house.api("GET", f"/api/v1/datasources/{name}/")
    assert shown["rows"] == 40_000


@pytest.mark.timeout(900)
def test_an_interval_is_overwritten_at_once_or_not_at_all(house: House, tmp_path: Path) -> None:
    """Row 34 of the failure matrix: the application is killed with its files written; the next one with its publish
    committed and unheard. Under Spark, whose driver publishes and is killed.
    """
    name = house.make_topic(f"overwrite-{os.getpid()}")
    before, after = table(1, 3_000), table(2, 1_000, first_day=1, days=1)
    write(house, name, "a.csv", before)
    house.ended(house.submit(spec(house, name)))
    os.unlink(house.input / name / "a.csv")
    write(house, name, "b.csv", after)

    held = tmp_path / "written"
    house.fail_at(f"{name}/batch", written=f"hold:{held}")
    lost = house.submit(spec(house, name))
    wait_for("its files are written", held.exists, 120, lambda: house.logs(name))
    assert house.kill_application(lost)
    house.ended(lost, "FAILED")
    assert same(stored(house, name), before)

    told = tmp_path / "published"
    house.fail_at(f"{name}/batch", published=f"hold:{told}")
    task = house.submit(spec(house, name))
    wait_for("it has published", told.exists, 120, lambda: house.logs(name))
    house.kill_application(task)
    house.ended(task)
    second = START_MS + DAY_MS
    kept = before[(before["t"] < second) | (before["t"] >= second + DAY_MS)]
    assert same(stored(house, name), pd.concat([kept, after]))
    again = spec(house, name, inputSource={"type": "druid", "dataSource": name, "interval": "2025-01-01/P1M"})
    del again["spec"]["ioConfig"]["inputFormat"]
    again["spec"]["dataSchema"]["timestampSpec"] = {"column": "__time", "format": "millis"}
    again["spec"]["dataSchema"]["granularitySpec"]["segmentGranularity"] = "MONTH"
    versions = {start.day: version for _, version, start, _ in house.sql(_USED, name)}
    assert versions[2] > versions[1] == versions[3]
    house.fail_at(f"{name}/batch")
    house.ended(house.submit(again))
    assert same(stored(house, name), pd.concat([kept, after]))
    assert len({start for _, _, start, _ in house.sql(_USED, name)}) == 1
