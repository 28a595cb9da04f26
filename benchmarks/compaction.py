"""Many small segments to few: Headgate's merge in Spark tasks, bare DuckDB and Spark SQL, on the same files.

Then a share group at full speed with compaction beside it, against the same without.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks import compaction_beside
from ingestion.compaction.merging import merge
from ingestion.rows import TIME_TYPE
from ingestion.segments.batch import write_segments
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.compaction import CompactionJob, InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.column_ids import some_ids

PARTS = ("merge", "beside")
START = datetime(2025, 6, 1, tzinfo=UTC)
HOUR_MS = 3_600_000
START_MS = 1_748_736_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--only", choices=PARTS, help="one of the two parts; both if not given")
    compaction_beside.add_options(parser)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=5_000, help="of a file")
    parser.add_argument("--intervals", type=int, default=24)
    parser.add_argument("--cores", type=int, default=2)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    parts = {"merge": _merge_alone, "beside": compaction_beside.run}
    results = [parts[name](options) for name in PARTS if options.only in (None, name)]
    both = {key: sum(part[key] for part in results) for key in ("lost", "duplicated")}
    return {key: value for part in results for key, value in part.items()} | both


def _merge_alone(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        jobs = _jobs(options, root)
        rows = sum(s.rows for job in jobs for s in job.segments)
        spark = _session(options.cores, root)
        try:
            timings = {
                "duckdb": _timed(lambda: _duckdb(jobs, root, options.cores)),
                "headgate": _timed(lambda: _headgate(spark, jobs)),
                "spark_sql": _timed(lambda: _spark_sql(spark, jobs, root)),
            }
        finally:
            spark.stop()
        written = {name: _count_rows(root / name) for name in ("duckdb", "spark_sql")}
        written["headgate"] = _count_rows(root / "deep" / "bench", version="merged")
    rates = {f"{name}_rows_per_s": rows / wall for name, (wall, _) in timings.items()}
    return {
        "rows": rows,
        **rates,
        **{f"{name}_cpu_s": cpu for name, (_, cpu) in timings.items()},
        "ratio_duckdb": rates["headgate_rows_per_s"] / rates["duckdb_rows_per_s"],
        "ratio_spark_sql": rates["headgate_rows_per_s"] / rates["spark_sql_rows_per_s"],
        "cpu_ratio_duckdb": timings["duckdb"][1] / timings["headgate"][1],
        "cpu_ratio_spark_sql": timings["spark_sql"][1] / timings["headgate"][1],
        "lost": rows - written["headgate"][1],
        "duplicated": written["headgate"][0] - written["headgate"][1],
        "wrong": [name for name, numbers in written.items() if numbers != (rows, rows)],
    }


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time of this process and all that it has started."""
    began, before = time.monotonic(), _cpu_s()
    work()
    return time.monotonic() - began, _cpu_s() - before


def _cpu_s() -> float:
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _schema() -> DataSchema:
    return DataSchema.model_validate(
        {
            "dataSource": "bench",
            "timestampSpec": {"column": "time"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "HOUR", "rollup": False},
            "metricsSpec": [],
        }
    )


def _jobs(options: argparse.Namespace, root: Path) -> list[CompactionJob]:
    """One for each hour; a file in ten has a column more."""
    storage, schema, dice = LocalStorage(root / "deep", fsync=False), _schema(), np.random.default_rng(1)
    files: dict[datetime, list[SegmentFile]] = {}
    for number in range(options.files):
        rows = _rows(dice, number, number % options.intervals, options.rows)
        [file] = write_segments(
            rows,
            np.zeros(options.rows, np.int32),
            np.arange(options.rows),
            schema=schema,
            version="small",
            storage=storage,
            scratch=root / "scratch",
            ids=some_ids(),
        )
        files.setdefault(file.interval_start, []).append(file)
    return [_job(start, hour_files, schema, root) for start, hour_files in sorted(files.items())]


def _rows(dice: np.random.Generator, file: int, hour: int, rows: int) -> pa.Table:
    times = pa.array(START_MS + hour * HOUR_MS + np.sort(dice.integers(0, HOUR_MS, rows)), pa.int64())
    columns = {
        "kind": pa.array([f"kind {n}" for n in dice.integers(0, 50, rows)]),
        "user": pa.array([f"{n:012x}" for n in dice.integers(0, 2**40, rows)]),
        "value": pa.array(dice.random(rows)),
        "n": pa.array(np.arange(file * rows, (file + 1) * rows)),
        **({"late": pa.array(dice.integers(0, 9, rows))} if file % 10 == 0 else {}),
    }
    lead = [pa.array(range(rows), pa.int32()), times.cast(pa.timestamp("ms", "UTC")).cast(TIME_TYPE)]
    return pa.table([*lead, *columns.values()], names=["__row", "__time", *columns])


def _job(start: datetime, files: list[SegmentFile], schema: DataSchema, root: Path) -> CompactionJob:
    return CompactionJob(
        job_id=f"compact_{start:%H}",
        attempt=1,
        interval_start=start,
        interval_end=start + timedelta(hours=1),
        version="merged",
        data_schema=schema,
        rollup=False,
        segments=[
            InputSegment(id=uuid.uuid4(), path=f.path, rows=f.rows, size_bytes=f.size_bytes, sha256=f.sha256)
            for f in files
        ],
        schemas=[f.columns for f in files],
        max_rows_per_segment=5_000_000,
        deep_storage=str(root / "deep"),
    )


def _paths(job: CompactionJob) -> list[str]:
    return [f"{job.deep_storage}/{s.path}" for s in job.segments]


def _session(cores: int, root: Path) -> SparkSession:
    """Started, and warm in Python: an application of compaction is, from its second job on."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.sources.parallelPartitionDiscovery.threshold", "1000000")
        .config("spark.sql.files.openCostInBytes", "65536")
        .config("spark.local.dir", str(root / "spark"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.parallelize(range(cores), cores).mapPartitions(_warm).collect()
    return spark


def _warm(numbers: Iterable[int]) -> Iterator[int]:
    yield len(merge.__name__)


def _headgate(spark: SparkSession, jobs: list[CompactionJob]) -> None:
    """A Spark task for each interval, as the application has it; nothing is registered."""
    orders = [job.model_dump_json() for job in jobs]
    spark.sparkContext.parallelize(orders, len(orders)).mapPartitions(_merge_jobs).collect()


def _merge_jobs(orders: Iterable[str]) -> Iterator[int]:
    for order in orders:
        job = CompactionJob.model_validate_json(order)
        with tempfile.TemporaryDirectory() as scratch:
            files = merge(job, LocalStorage(Path(job.deep_storage), fsync=False), Path(scratch), some_ids()).files
        yield sum(f.rows for f in files)


def _duckdb(jobs: list[CompactionJob], root: Path, cores: int) -> None:
    """A COPY for each interval."""
    folder = root / "duckdb"
    folder.mkdir()
    engine = duckdb.connect(":memory:", config={"threads": cores})
    for job in jobs:
        rows = f"read_parquet({_paths(job)!r}, union_by_name=true)"
        target = f"{folder}/{job.job_id}.parquet"
        engine.execute(
            f"COPY (SELECT * FROM {rows} ORDER BY __time, kind, user, value, n)"
            f" TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )
    engine.close()


def _spark_sql(spark: SparkSession, jobs: list[CompactionJob], root: Path) -> None:
    """All at once: a shuffle by time, sorted within."""
    paths = [f"file://{path}" for job in jobs for path in _paths(job)]
    schema = "__time timestamp, kind string, user string, value double, n long, late long"
    rows: DataFrame = spark.read.schema(schema).parquet(*paths)
    by_range = rows.repartitionByRange(len(jobs), "__time").sortWithinPartitions("__time", "kind", "user", "value", "n")
    by_range.write.option("compression", "zstd").parquet(f"file://{root}/spark_sql")


def _count_rows(folder: Path, version: str = "") -> tuple[int, int]:
    """How many rows there are in all files, and how many different numbers they have."""
    files = [p for p in folder.rglob("*.parquet") if not version or p.parent.name == version]
    storage = LocalStorage(folder, fsync=False)
    numbers = [read_segment(storage, str(p.relative_to(folder))).column("n").to_numpy() for p in files]
    all_numbers = np.concatenate(numbers)
    return len(all_numbers), len(np.unique(all_numbers))
