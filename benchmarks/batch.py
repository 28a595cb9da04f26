"""Files of JSON to segments by a batch task, against a plain Spark job that writes the same Parquet of them.

Times count from the submission of the task to its publish, and from the start of the Spark job's process to its end;
what Spark needs to start is part of both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psutil

from benchmarks.measure import median
from benchmarks.stack import add_stack_options, stack
from controlplane.embedded.home import PROJECT
from tests.support.house import House

DAYS = 10
DAY_MS = 86_400_000
CORES = 2
_START = datetime(2025, 6, 1, tzinfo=UTC)
_RECORDS_PER_FILE = 500_000  # records
_POLL_S = 0.5
_EVENTS, _COUNTRIES = ("view", "view", "cart", "order"), ("DE", "FR", "SE", "US", "JP")
_DIMENSIONS = ["event", "session", "user", "country", "city", "url", "agent"]
_LONGS = ["n", "quantity"]
_DOUBLES = ["lat", "price", "total"]
# What both sides must agree on, to the last row.
_SUMMARY = """
    SELECT count(*), count(DISTINCT n), sum(n), sum(quantity), sum(round(total * 100)::BIGINT),
           sum(round(lat * 1000)::BIGINT), sum(length(city) + length(url) + length(agent)), count(DISTINCT session),
           count(DISTINCT "user"), min(epoch_ms(__time)), max(epoch_ms(__time)), sum(epoch_ms(__time)::HUGEINT),
           count(*) FILTER (country = 'DE'), count(*) FILTER (event = 'view')
    FROM read_parquet({files}, hive_partitioning = false)
"""
_USED = """
    SELECT s.path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE s.used AND d.name = %s
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=2, help="who comes first takes turns")


@dataclass(frozen=True)
class Cost:
    """Of one pass: by the clock, and of processor time of all its processes."""

    seconds: float
    cpu_s: float


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    costs: dict[str, list[Cost]] = {"headgate": [], "spark": []}
    lost = duplicated = 0
    with stack(options) as house:
        size = write_input(house.input, options.rows)
        for turn in range(options.rounds):
            ours, theirs = _round(house, turn, costs)
            if ours != theirs:
                raise RuntimeError(f"the files differ: {ours} and {theirs}")
            lost, duplicated = lost + options.rows - ours[1], duplicated + ours[0] - ours[1]
            print(
                ", ".join(f"{name} {options.rows / c[-1].seconds:,.0f} rows/s" for name, c in costs.items()), flush=True
            )
    rates = {name: median([options.rows / c.seconds for c in passes]) for name, passes in costs.items()}
    cpu = {name: median([c.cpu_s for c in passes]) for name, passes in costs.items()}
    return {
        "headgate_rows_per_s": rates["headgate"],
        "spark_rows_per_s": rates["spark"],
        "ratio_spark": rates["headgate"] / rates["spark"],
        "headgate_cpu_s": cpu["headgate"],
        "spark_cpu_s": cpu["spark"],
        "cpu_ratio_spark": cpu["spark"] / cpu["headgate"],
        "lost": lost,
        "duplicated": duplicated,
        "rows": options.rows,
        "bytes_a_row": size / options.rows,
    }


def _round(house: House, turn: int, costs: dict[str, list[Cost]]) -> tuple[Any, Any]:
    """Both, who was second before first now; what both have written."""
    datasource, folder = f"batch-{turn}", house.home.path / f"spark-{turn}"
    sides = {"headgate": lambda: _run_headgate(house, datasource), "spark": lambda: _run_spark(house.input, folder)}
    for name in list(sides)[:: -1 if turn % 2 else 1]:
        costs[name].append(sides[name]())
    return _summary(_segments(house, datasource)), _summary(sorted(map(str, folder.rglob("*.parquet"))))


def write_input(folder: Path, rows: int) -> int:
    """JSON lines in files, as often as there are rows; how many bytes."""
    starts = range(0, rows, _RECORDS_PER_FILE)
    with ProcessPoolExecutor(CORES, multiprocessing.get_context("spawn")) as pool:
        return sum(
            pool.map(_write_file, [folder] * len(starts), starts, [min(s + _RECORDS_PER_FILE, rows) for s in starts])
        )


def _write_file(folder: Path, start: int, stop: int) -> int:
    path = folder / f"{start:012}.json"
    with path.open("w", buffering=1 << 20) as file:
        file.writelines(_records(start, stop))
    return path.stat().st_size


def _records(start: int, stop: int) -> Iterator[str]:
    """About 400 bytes each, over all days in any order."""
    for n in range(start, stop):
        dice = n * 2_654_435_761 % 4_294_967_296
        at = (_START + timedelta(milliseconds=dice % (DAYS * DAY_MS))).isoformat(timespec="milliseconds")[:-6]
        country, release = _COUNTRIES[dice % 5], 100 + dice % 40
        yield (
            f'{{"time":"{at}Z","n":{n},"event":"{_EVENTS[n % 4]}","session":"{dice:016x}",'
            f'"user":{{"id":"u{dice % 1_000_003}","country":"{country}","tier":"gold"}},'
            f'"geo":{{"city":"city {dice % 977}","lat":{dice % 180_000 / 1000 - 90:.3f},'
            f'"lon":{dice % 360_000 / 1000 - 180:.3f}}},'
            f'"price":{dice % 100_000 / 100},"quantity":{1 + dice % 7},'
            f'"url":"https://shop.example/products/{dice % 50_021}/details?ref=newsletter&campaign=summer-{n % 31}",'
            f'"agent":"Mozilla/5.0 (X11; Linux x86_64; rv:{release}.0) Gecko/20100101 Firefox/{release}.0"}}\n'
        )


def spec(folder: Path, datasource: str) -> dict[str, Any]:
    """Nested fields flattened, and one computed."""
    paths = {"user": "$.user.id", "country": "$.user.country", "city": "$.geo.city", "lat": "$.geo.lat"}
    fields = [{"type": "path", "name": name, "expr": path} for name, path in paths.items()]
    total = {"type": "expression", "name": "total", "expression": "price * quantity"}
    numbers = [{"name": n, "type": "long"} for n in _LONGS] + [{"name": n, "type": "double"} for n in _DOUBLES]
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "time", "format": "iso"},
                "dimensionsSpec": {"dimensions": [*_DIMENSIONS, *numbers]},
                "transformSpec": {"transforms": [total]},
                "granularitySpec": {"segmentGranularity": "DAY", "rollup": False},
            },
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": {"type": "local", "baseDir": str(folder), "filter": "*.json"},
                "inputFormat": {"type": "json", "flattenSpec": {"fields": fields}},
            },
            "tuningConfig": {"type": "index_parallel", "maxNumConcurrentSubTasks": CORES},
        },
    }


def _run_headgate(house: House, datasource: str) -> Cost:
    """From the submission to the publish."""
    began = time.time()
    cpu_s: dict[int, float] = {}
    task = house.submit(spec(house.input, datasource))
    while house.status(task) not in ("SUCCESS", "FAILED"):
        cpu_s |= _cpu_s(house.application_pid(task))
        time.sleep(_POLL_S)
    house.ended(task)
    [(published,)] = house.sql("SELECT extract(epoch FROM ended_at) FROM tasks_task WHERE id = %s", task)
    return Cost(float(published) - began, sum(cpu_s.values()))


def _cpu_s(pid: int | None) -> dict[int, float]:
    """Of a process and each that it has started, until now.

    Spark's Python daemon lets the kernel forget its children: what they took is in nobody's account once they are gone.
    """
    try:
        top = psutil.Process(pid) if pid else None
        family = [top, *top.children(recursive=True)] if top else []
        return {process.pid: sum(process.cpu_times()[:2]) for process in family}
    except psutil.NoSuchProcess:
        return {}


def _run_spark(source: Path, target: Path) -> Cost:
    """From the start of its process to the end."""
    command = [sys.executable, "-m", "benchmarks.batch_peer", str(source), str(target), str(CORES), str(DAYS)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Spark failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    report = json.loads(done.stdout.splitlines()[-1])
    return Cost(report["from_start_s"], report["cpu_s"])


def _segments(house: House, datasource: str) -> list[str]:
    return sorted(str(house.home.segments / path) for (path,) in house.sql(_USED, datasource))


def _summary(files: list[str]) -> tuple[Any, ...]:
    with duckdb.connect(":memory:") as engine:
        return engine.execute(_SUMMARY.format(files=repr(files))).fetchall()[0]
