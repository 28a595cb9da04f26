"""``headgate.read`` against Spark's Parquet reader, which is given the paths and the schema by hand.

Both read the same files in the same session, alternating. By hand nobody asks the control plane: that question, the
union of schemas and the filter of an interval are what ``headgate.read`` adds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import headgate
from benchmarks.measure import PARTITIONS, START, await_rows, backlog, median
from benchmarks.offsets import DIMENSIONS, TUNING
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House
from tests.support.spark_session import spark_session

DATASOURCE = "read"
_PATHS = (
    "SELECT path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id"
    " WHERE d.name = %s AND s.used"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rows-per-file", type=int, default=50_000, help="at most")
    parser.add_argument("--rounds", type=int, default=7, help="alternating; the medians are compared")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    with stack(options) as house, tempfile.TemporaryDirectory() as folder, spark_session(Path(folder)) as spark:
        files = _ingest(house, options)
        sides = _sides(spark, house, files)
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        wrong = 0
        for turn in range(-1, options.rounds):  # the first warms up
            for name, read_rows in sides.items():
                took, totals = _timed(read_rows)
                wrong += totals != (options.records, options.records * (options.records - 1) // 2)
                if turn >= 0:
                    seconds[name].append(took)
                    print(f"round {turn + 1}: {name} {took:.2f} s", flush=True)
    medians = {name: median(values) for name, values in seconds.items()}
    return {
        "ratio_by_hand": medians["by_hand"] / medians["headgate"],
        "ratio_by_hand_interval": medians["by_hand_interval"] / medians["headgate_interval"],
        **{f"{name}_rows_per_s": options.records / value for name, value in medians.items()},
        "wrong": wrong,
        "files": len(files),
        "records": options.records,
    }


def _ingest(house: House, options: argparse.Namespace) -> list[str]:
    """Where the files are, once all records are in them."""
    topic = house.topic(DATASOURCE)
    backlog(house, topic, options.records)
    tuning = {**TUNING, "maxTotalRows": options.rows_per_file, "maxRowsPerSegment": options.rows_per_file}
    spec = house.kafka_spec(topic, DATASOURCE, tuning, taskCount=PARTITIONS)
    spec["dataSchema"]["dimensionsSpec"] = {"dimensions": DIMENSIONS}
    house.supervise(spec)
    await_rows(house, DATASOURCE, options.records)
    house.rest()
    return [str(house.home.segments / path) for (path,) in house.sql(_PATHS, DATASOURCE)]


def _sides(spark: SparkSession, house: House, files: list[str]) -> dict[str, Callable[[], DataFrame]]:
    ours = partial(headgate.read, spark, DATASOURCE, url=house.url, token=house.token)
    day = f"{START:%Y-%m-%d}"
    schema = ours().schema

    def by_hand() -> DataFrame:
        return spark.read.schema(schema).parquet(*files)

    def by_hand_interval() -> DataFrame:
        time_column = f.col("__time")
        start = f.expr(f"TIMESTAMP '{day}T00:00:00Z'")
        return by_hand().where((time_column >= start) & (time_column < start + f.expr("INTERVAL 7 DAYS")))

    return {
        "by_hand": by_hand,
        "headgate": ours,
        "by_hand_interval": by_hand_interval,
        "headgate_interval": partial(ours, f"{day}/2025-06-08"),
    }


def _timed(read_rows: Callable[[], DataFrame]) -> tuple[float, tuple[int, int]]:
    """Seconds from the first call to the answer; how many rows there are, and the sum of their numbers."""
    began = time.monotonic()
    totals = read_rows().agg(f.count("kind").alias("rows"), f.sum("n").alias("numbers")).collect()[0]
    return time.monotonic() - began, (totals.rows, totals.numbers)
