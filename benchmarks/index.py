"""Rows that gather until handoff, in a process of its own: what a row costs, and how much memory all of it needs."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.segments.index import RowIndex
from ingestion.segments.local import LocalStorage
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.tasks.ingestion_spec import TuningConfig
from tests.support.column_ids import some_ids

START = datetime(2025, 6, 1, tzinfo=UTC)
RECORD_BYTES = 100
BATCH = 10_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--megabytes", type=int, default=64, help="maxBytesInMemory")
    parser.add_argument("--rollup", action="store_true", help="to the minute")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool, tempfile.TemporaryDirectory() as folder:
        return pool.submit(measure, options, Path(folder)).result()


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """In the process itself."""
    before_mb = _peak_mb()
    schema = _schema(options.rollup)
    decoder = JsonDecoder(schema, 4 * options.megabytes * 2**20)
    tuning = TuningConfig(maxBytesInMemory=options.megabytes * 2**20)
    index = RowIndex(schema=schema, tuning=tuning, scratch=folder / "scratch")
    spent = dict.fromkeys(("decode", "add", "write"), 0.0)
    started, records_s = time.process_time(), 0.0
    for first in range(0, options.rows, BATCH):
        clock = time.thread_time()
        batch = list(records(first, first + BATCH))
        records_s += time.thread_time() - clock
        clock = time.thread_time()
        rows = decoder.decode(batch, MessageWindow()).rows
        spent["decode"] += time.thread_time() - clock
        clock = time.thread_time()
        index.add(rows, np.zeros(BATCH, np.int32), np.arange(first, first + BATCH))
        spent["add"] += time.thread_time() - clock
    background_s = time.process_time() - started - records_s - sum(spent.values())
    clock = time.process_time()
    files = index.write(version="v", storage=LocalStorage(folder / "deep"), ids=some_ids())
    spent["write"] = time.process_time() - clock
    runs = len(list((folder / "scratch").rglob("*.parquet")))
    index.close()
    decoder.close()
    costs = {f"{name}_us": seconds / options.rows * 1e6 for name, seconds in {**spent, "persist": background_s}.items()}
    rows_written = sum(f.rows for f in files)
    return {**costs, "runs": runs, "rows": rows_written, "before_mb": before_mb, "peak_mb": _peak_mb()}


def records(first: int, last: int) -> Iterator[bytes]:
    """JSON objects of 100 bytes within one day, each with its number."""
    for n in range(first, last):
        when = (START + timedelta(milliseconds=320 * n % 86_400_000)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        text = f'{{"time":"{when}","n":{n},"kind":"k{n % 10}","value":{n % 1000}'
        yield (text + ',"pad":"' + "x" * (RECORD_BYTES - len(text) - 10) + '"}').encode()


def _schema(rollup: bool) -> DataSchema:
    granularity = {"rollup": True, "queryGranularity": "MINUTE"} if rollup else {"rollup": False}
    metrics = [{"type": "count", "name": "count"}, {"type": "longSum", "name": "n", "fieldName": "n"}]
    return DataSchema.model_validate(
        {
            "dataSource": "bench",
            "timestampSpec": {"column": "time"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "DAY", **granularity},
            "metricsSpec": metrics if rollup else [],
        }
    )


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
