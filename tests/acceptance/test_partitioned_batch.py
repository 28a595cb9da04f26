"""Batch and compact tasks with partitions by hash and by range: rollup is perfect, whatever is killed."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.support.house import House
from tests.support.waiting import wait_for

ROWS, START_MS, HOUR_MS = 60_000, 1_735_689_600_000, 3_600_000  # 2025-01-01
_USED = """
    SELECT s.path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""


def records() -> pd.DataFrame:
    """Of two days; 48 hours, 7 pages and 40 codes."""
    numbers = pd.Series(range(ROWS))
    return pd.DataFrame(
        {
            "t": START_MS + (numbers * 7 % 48) * HOUR_MS + numbers % 1000,
            "page": "p" + (numbers // 3 % 7).astype(str),
            "code": numbers * 11 % 40,
            "n": numbers,
        }
    )


def pandas_says(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    hour = rows["t"] // HOUR_MS * HOUR_MS
    groups = rows.groupby([hour, "page", "code"]).agg(rows=("n", "size"), n=("n", "sum"), last=("n", "max"))
    return sorted(groups.reset_index().itertuples(index=False, name=None))


def stored(house: House, datasource: str) -> list[pd.DataFrame]:
    deep = Path(house.environment["HEADGATE_DEEP_STORAGE"])
    return [pd.read_parquet(deep / path) for (path,) in house.sql(_USED, datasource)]


def told(tables: list[pd.DataFrame]) -> list[tuple[Any, ...]]:
    whole = pd.concat(tables)
    whole["t"] = whole["__time"].dt.as_unit("ms").astype("int64")
    return sorted(whole[["t", "page", "code", "rows", "n", "last"]].itertuples(index=False, name=None))


def spec(house: House, datasource: str) -> dict[str, Any]:
    schema = {
        "dataSource": datasource,
        "timestampSpec": {"column": "t", "format": "millis"},
        "dimensionsSpec": {"dimensions": ["page", {"name": "code", "type": "long"}]},
        "metricsSpec": [
            {"type": "count", "name": "rows"},
            {"type": "longSum", "name": "n", "fieldName": "n"},
            {"type": "longMax", "name": "last", "fieldName": "n"},
        ],
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True},
    }
    reading = {
        "type": "index_parallel",
        "inputSource": {"type": "local", "baseDir": str(house.input / datasource), "filter": "*.csv"},
        "inputFormat": {"type": "csv", "findColumnsFromHeader": True},
    }
    tuning = {
        "type": "index_parallel",
        "maxNumConcurrentSubTasks": 2,
        "forceGuaranteedRollup": True,
        "partitionsSpec": {"type": "hashed", "targetRowsPerSegment": 300},
        "splitHintSpec": {"type": "maxSize", "maxSplitSize": 400_000},
    }
    return {"type": "index_parallel", "spec": {"dataSchema": schema, "ioConfig": reading, "tuningConfig": tuning}}


@pytest.mark.timeout(900)
def test_rows_are_rolled_up_perfectly_by_hash_and_then_by_range(house: House, tmp_path: Path) -> None:
    """A process that has written its part is killed: it is written again, and once only counts.

    Under Spark, whose shuffle brings equal rows together.
    """
    name = house.make_topic(f"partitions-{os.getpid()}")
    folder = house.input / name
    folder.mkdir()
    rows = records()
    for number in range(3):
        rows[number::3].to_csv(folder / f"{number}.csv", index=False)
    held = tmp_path / "bin_written"
    house.fail_at(f"{name}/batch", bin_written=f"hold_once:{held}")
    task = house.submit(spec(house, name))
    wait_for("a part is written", held.exists, 240, lambda: house.logs(name))
    os.kill(int(held.read_text()), signal.SIGKILL)
    house.ended(task, seconds=240)
    wanted = pandas_says(rows)
    found = stored(house, name)
    assert told(found) == wanted
    assert len(found) == 2 * -(-len(wanted) // 2 // 300)  # each day has half of the rows

    ranges = {"type": "range", "partitionDimensions": ["code"], "maxRowsPerSegment": 200}
    days = {"type": "interval", "interval": "2025-01-01/P2D"}
    document = {
        "type": "compact",
        "dataSource": name,
        "ioConfig": {"type": "compact", "inputSpec": days},
        "tuningConfig": {"type": "index_parallel", "forceGuaranteedRollup": True, "partitionsSpec": ranges},
    }
    task = house.submit(document)
    house.ended(task, seconds=240)
    found = stored(house, name)
    assert told(found) == wanted
    deep = Path(house.environment["HEADGATE_DEEP_STORAGE"])
    ends = []
    for (path,) in house.sql(_USED, name):
        file = pq.ParquetFile(deep / path).metadata
        column = file.schema.to_arrow_schema().get_field_index("code")
        groups = [file.row_group(n).column(column).statistics for n in range(file.num_row_groups)]
        ends.append((path.split("/")[1], min(g.min for g in groups), max(g.max for g in groups)))
    for day in {day for day, _, _ in ends}:
        mine = sorted((low, high) for where, low, high in ends if where == day)
        assert len(mine) > 1 and all(before[1] < after[0] for before, after in pairwise(mine))
