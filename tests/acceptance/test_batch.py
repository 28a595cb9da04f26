"""Files become segments, once, whatever is killed; what is overwritten goes in the same moment. On real services."""

from __future__ import annotations

import os
import random
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.support.house import House
from tests.support.waiting import wait_for

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
START_MS = 1_735_689_600_000  # 2025-01-01
ROWS, EACH = 20_000, 50  # of a file; every so many rows one has its time as a text
LATE, BROKEN = 2 * ROWS // EACH, 7  # more than a replay reads at once; and lines that are no CSV whatever a spec says
_USED = """
    SELECT s.path, s.version, s.interval_start, s.partition_num FROM segments_segment s
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.used
"""
_KEPT = """
    SELECT q.place, q."offset", q.reason, convert_from(q.payload, 'UTF8') FROM quarantine_quarantinedrecord q
    JOIN datasources_datasource d ON d.id = q.datasource_id WHERE d.name = %s
"""
_BY_STATE = """
    SELECT q.state, count(*) FROM quarantine_quarantinedrecord q
    JOIN datasources_datasource d ON d.id = q.datasource_id WHERE d.name = %s GROUP BY 1
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


def spec(house: House, datasource: str, time_format: str = "millis") -> dict[str, Any]:
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "t", "format": time_format},
                "dimensionsSpec": {"dimensions": ["page", {"name": "n", "type": "long"}]},
                "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "local", "baseDir": str(house.input / datasource), "filter": "*.csv"},
                "inputFormat": {"type": "csv", "findColumnsFromHeader": True},
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


def files(house: House, datasource: str) -> list[pd.DataFrame]:
    """What is in use now, file by file."""
    deep = Path(house.environment["HEADGATE_DEEP_STORAGE"])
    return [pd.read_parquet(deep / path) for path, *_ in house.sql(_USED, datasource)]


def milliseconds(found: pd.DataFrame) -> pd.Series:
    return found["__time"].dt.as_unit("ms").astype("int64").rename("t")


def stored(house: House, datasource: str) -> pd.DataFrame:
    """What is in use now, as it was written."""
    found = pd.concat(files(house, datasource))
    return _in_order(pd.concat([milliseconds(found), found[["page", "n"]]], axis=1))


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values("n").reset_index(drop=True).astype({"page": "object"})


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    one, other = (_in_order(rows).fillna({"page": ""}) for rows in (one, other))
    return len(one) == len(other) and bool((one == other).all(axis=None))


def is_late(rows: pd.DataFrame) -> pd.Series:
    return rows["n"] % EACH == 0


def write_some_late(house: House, datasource: str, name: str, rows: pd.DataFrame, *more: str) -> list[tuple[Any, ...]]:
    """Some times are texts. Of the lines that the spec can't read: the file, the byte where each begins, and itself."""
    at = pd.to_datetime(rows["t"], unit="ms").dt.strftime("%Y-%m-%dT%H:%M:%S.%f").str[:-3] + "Z"
    write(house, datasource, name, rows.assign(t=rows["t"].astype(object).where(~is_late(rows), at)))
    file = house.input / datasource / name
    lines = [*file.read_text().splitlines(), *more]
    file.write_text("\n".join(lines) + "\n")
    begins, bad = 0, []
    for line in lines:
        if "Z," in line or line in more:
            bad.append((name, begins, line))
        begins += len(line.encode()) + 1
    return bad


def replay(house: House, datasource: str) -> str:
    """A task that ingests what is kept, with a spec that reads both kinds of times."""
    body = {"mode": "ingest", "filter": {"state": "kept"}, "spec": spec(house, datasource, "auto")}
    [task] = house.api("POST", f"/api/v1/datasources/{datasource}/quarantine/replay/", body)["tasks"]
    return str(task)


def books(house: House, datasource: str) -> tuple[int, int, int, int]:
    totals = house.totals(datasource)
    return totals["polled"], totals["published"], totals["unparseable"], totals["quarantined"]


def killed_at(house: House, datasource: str, held: Path) -> None:
    """Wait until a process stands there, and kill it."""
    wait_for(held.name, held.exists, 120, lambda: house.logs(datasource))
    os.kill(int(held.read_text()), signal.SIGKILL)


@pytest.mark.timeout(900)
def test_files_are_stored_once_whatever_is_killed(house: House, tmp_path: Path) -> None:
    """Row 34 of the failure matrix: a process that has read its split and holds its bad records is killed, then one
    that has written its part; the publish's answer is lost. Under Spark, which runs a killed process's part anew.

    Row 37 of the failure matrix: the replay of what could not be read is killed after its first publish; the answer to
    the next one's is lost.
    """
    name = house.make_topic(f"batch-{os.getpid()}")
    frames = [table(seed, ROWS) for seed in (1, 2)]
    bad = write_some_late(house, name, "0.csv", frames[0])
    bad += write_some_late(house, name, "1.csv", frames[1], *(f'never,"{n}' for n in range(BROKEN)))
    assert len(bad) == LATE + BROKEN
    whole = pd.concat(frames)
    held = {place: tmp_path / place for place in ("read", "bin_written")}
    house.fail_at(f"{name}/batch", **{place: f"once:{file}:hold" for place, file in held.items()})
    house.proxy.set("lose_answer")
    task = house.submit(spec(house, name))
    for file in held.values():
        assert not house.sql(_KEPT, name)
        killed_at(house, name, file)
    wait_for("the publish has been sent", lambda: house.proxy.hits, 90, lambda: house.logs(name))
    house.ended(task)
    house.proxy.set("pass")
    good = whole[~is_late(whole)]
    assert same(stored(house, name), good)
    kept = house.sql(_KEPT, name)
    found = sorted((Path(place.partition(", ")[0]).name, at, payload) for place, at, _, payload in kept)
    assert found == sorted(bad) and all(f"byte {at}" in place for place, at, *_ in kept), kept
    assert {reason for _, _, reason, _ in kept} == {"unparseable"}
    report = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")
    stats = report["ingestionStatsAndErrors"]["payload"]["rowStats"]["totals"]["buildSegments"]
    assert (stats["processed"], stats["unparseable"], stats["thrownAway"]) == (len(good), len(bad), 0)
    assert report["headgate"]["payload"]["adds_up"]
    assert books(house, name) == (len(whole) + BROKEN, len(good), len(bad), len(bad))
    assert house.api("GET", f"/api/v1/datasources/{name}/")["rows"] == len(good)

    for file in (house.input / name).iterdir():
        file.unlink()  # nothing reads it again
    told = tmp_path / "published"
    house.fail_at(f"{name}/batch", published=f"hold:{told}")
    again = replay(house, name)
    wait_for("the replay has published", told.exists, 60, lambda: house.logs(name))
    house.fail_at(f"{name}/batch")
    assert house.kill_application(again)
    house.ended(again, "FAILED")
    assert dict(house.sql(_BY_STATE, name)) == {"kept": len(bad) - 500, "stored": 500}
    house.proxy.set("lose_answer")
    again = replay(house, name)
    wait_for("an answer was lost", lambda: house.proxy.hits, 60, lambda: house.logs(name))
    house.proxy.set("pass")
    house.ended(again)
    assert dict(house.sql(_BY_STATE, name)) == {"kept": BROKEN, "stored": LATE}
    assert same(stored(house, name), whole)
    assert books(house, name) == (len(whole) + BROKEN, len(whole), BROKEN, BROKEN)


PAGES, CODES = 7, 40
DIMENSIONS = ["page", {"name": "code", "type": "long"}]
METRICS = [
    {"type": "count", "name": "rows"},
    {"type": "longSum", "name": "n", "fieldName": "n"},
    {"type": "longMax", "name": "last", "fieldName": "n"},
]


def summed(house: House, datasource: str) -> dict[str, Any]:
    """A spec that rolls up by the hour into partitions by hash."""
    document = spec(house, datasource)
    granularity = {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True}
    schema = {"dimensionsSpec": {"dimensions": DIMENSIONS}, "metricsSpec": METRICS, "granularitySpec": granularity}
    document["spec"]["dataSchema"] |= schema
    del document["spec"]["tuningConfig"]["maxRowsPerSegment"]
    document["spec"]["tuningConfig"] |= {
        "forceGuaranteedRollup": True,
        "partitionsSpec": {"type": "hashed", "targetRowsPerSegment": 300},
        "splitHintSpec": {"type": "maxSize", "maxSplitSize": 100_000},
    }
    return document


def records(first_day: int, days: int) -> pd.DataFrame:
    """Of each hour so many that several are equal but for their number."""
    numbers = pd.Series(range(days * 6_000))
    return pd.DataFrame(
        {
            "t": START_MS + first_day * DAY_MS + (numbers * 7 % (days * 24)) * HOUR_MS + numbers % 1000,
            "page": "p" + (numbers // 3 % PAGES).astype(str),
            "code": numbers * 11 % CODES,
            "n": numbers,
        }
    )


def pandas_says(rows: pd.DataFrame, length_ms: int) -> list[tuple[Any, ...]]:
    start = rows["t"] // length_ms * length_ms
    groups = rows.groupby([start, "page", "code"]).agg(rows=("n", "size"), n=("n", "sum"), last=("n", "max"))
    return sorted(groups.reset_index().itertuples(index=False, name=None))


def sums(house: House, datasource: str) -> list[tuple[Any, ...]]:
    """Those in use now."""
    found = pd.concat(files(house, datasource))
    columns = ["t", "page", "code", "rows", "n", "last"]
    return sorted(found.assign(t=milliseconds(found))[columns].itertuples(index=False, name=None))


@pytest.mark.timeout(900)
def test_an_interval_is_overwritten_at_once_or_not_at_all(house: House, tmp_path: Path) -> None:
    """Row 34 of the failure matrix: the application is killed with its publish committed and unheard; the next one,
    which would overwrite a day, with its files written. Then rows are written anew by ranges, and a process of that is
    killed with its part written.
    Under Spark, whose driver publishes and is killed, and whose shuffle brings equal rows together.
    """
    name = house.make_topic(f"overwrite-{os.getpid()}")
    before, after = records(0, 3), records(1, 1)
    write(house, name, "a.csv", before)
    told = tmp_path / "published"
    house.fail_at(f"{name}/batch", published=f"hold:{told}")
    task = house.submit(summed(house, name))
    wait_for("it has published", told.exists, 120, lambda: house.logs(name))
    house.kill_application(task)
    house.ended(task)
    assert sums(house, name) == pandas_says(before, HOUR_MS)
    assert all(len(files_of_day) > 1 for files_of_day in by_interval(house, name).values())
    os.unlink(house.input / name / "a.csv")
    write(house, name, "b.csv", after)

    held = tmp_path / "written"
    house.fail_at(f"{name}/batch", written=f"hold:{held}")
    lost = house.submit(summed(house, name))
    wait_for("its files are written", held.exists, 120, lambda: house.logs(name))
    assert house.kill_application(lost)
    house.ended(lost, "FAILED")
    assert sums(house, name) == pandas_says(before, HOUR_MS)

    written = tmp_path / "bin_written"
    house.fail_at(f"{name}/batch", bin_written=f"once:{written}:hold")
    ranges = {"type": "range", "partitionDimensions": ["code"], "maxRowsPerSegment": 200}
    interval = {"type": "interval", "interval": "2025-01-01/P1M"}
    document = {
        "type": "compact",
        "dataSource": name,
        "ioConfig": {"type": "compact", "inputSpec": interval},
        "granularitySpec": {"segmentGranularity": "MONTH", "queryGranularity": "DAY"},
        "tuningConfig": {"type": "index_parallel", "forceGuaranteedRollup": True, "partitionsSpec": ranges},
    }
    task = house.submit(document)
    killed_at(house, name, written)
    house.ended(task, seconds=240)
    assert sums(house, name) == pandas_says(before, DAY_MS)
    [month] = by_interval(house, name).values()
    ends = sorted(code_range(house, path) for path in month)
    assert len(ends) > 1 and all(one[1] < other[0] for one, other in pairwise(ends))
    report = house.api("GET", f"/druid/indexer/v1/task/{task}/reports")["headgate"]["payload"]
    assert report["adds_up"] and report["published"] == len(pandas_says(before, DAY_MS))


def by_interval(house: House, datasource: str) -> dict[Any, list[str]]:
    """The paths of the files in use, by where their intervals begin."""
    found: dict[Any, list[str]] = {}
    for path, _, start, _ in house.sql(_USED, datasource):
        found.setdefault(start, []).append(path)
    return found


def code_range(house: House, path: str) -> tuple[int, int]:
    """The least and the largest code in a file, by its statistics: readers pass over files by these."""
    meta = pq.ParquetFile(Path(house.environment["HEADGATE_DEEP_STORAGE"]) / path).metadata
    place = meta.schema.to_arrow_schema().get_field_index("code")
    groups = [meta.row_group(n).column(place).statistics for n in range(meta.num_row_groups)]
    return min(g.min for g in groups), max(g.max for g in groups)
