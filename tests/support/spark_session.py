"""A Spark session in the test's own process, and queries over ``kafka-sharegroup`` in it."""

from __future__ import annotations

import functools
import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psutil
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headgate
from controlplane.embedded.home import PROJECT
from controlplane.embedded.spark_classes import submit_options
from ingestion.failpoints import VARIABLE
from tests.support.broker import Broker
from tests.support.waiting import wait_for

# Else a query without records asks its source a hundred times per second, and says what it found every ten seconds.
STREAMING = {"spark.sql.streaming.pollingDelay": "100ms", "spark.sql.streaming.noDataProgressEventInterval": "1s"}


@contextmanager
def spark_session(folder: Path, master: str = "local[4]", **conf: str) -> Iterator[SparkSession]:
    """One with the data sources, whose failpoints are in ``failpoints.json`` of the folder."""
    failpoints = folder / "failpoints.json"
    failpoints.write_text("{}")
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    os.environ[VARIABLE] = str(failpoints)
    os.environ["PYTHONPATH"] = str(PROJECT)
    usual = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **STREAMING,
    }
    builder = SparkSession.builder.master(master)
    for key, value in {**usual, **conf}.items():
        builder = builder.config(key, value)
    with pytest.MonkeyPatch.context() as patched:
        for name, option in submit_options().items():  # else half of its start is to load classes
            patched.setenv(name, option)
        spark = builder.getOrCreate()
    headgate.register(spark)
    try:
        yield spark
    finally:
        spark.stop()
        _end_jvm()
        os.environ.pop(VARIABLE)


def _end_jvm() -> None:
    """Spark keeps its JVM, whose environment would name the failpoints of this session to the next one's processes."""
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends with it
    gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


class Desk:
    """Queries of one session; each of them has a folder for its checkpoint and its rows."""

    def __init__(self, broker: Broker, spark: SparkSession, folder: Path) -> None:
        self.broker, self.spark, self.folder = broker, spark, folder

    def options(self, topic: str, name: str, **more: Any) -> dict[str, str]:
        """Of a reader whose group is the topic's, unless it is named."""
        usual = {
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "subscribe": topic,
            "shareGroupId": f"group-{topic}",
            "groupAutoOffsetReset": "earliest",
            "checkpointLocation": self.checkpoint(name),
            "numReaders": 2,
        }
        return {key: str(value) for key, value in {**usual, **more}.items()}

    def checkpoint(self, name: str) -> str:
        return str(self.folder / name / "checkpoint")

    def stream(self, topic: str, name: str, **more: Any) -> DataFrame:
        reader = self.spark.readStream.format("kafka-sharegroup").options(**self.options(topic, name, **more))
        return reader.load()

    def start(self, topic: str, name: str, available_now: bool = False, **more: Any) -> StreamingQuery:
        """From the group into Parquet. It has begun: of several at once, Spark gives each ten seconds.

        On a busy machine they may not be enough for its Python process; then it is started again.
        """
        writer = self.stream(topic, name, **more).writeStream.format("parquet")
        writer = writer.option("path", str(self.folder / name / "rows"))
        writer = writer.option("checkpointLocation", self.checkpoint(name))
        writer = writer.trigger(availableNow=True) if available_now else writer
        return wait_for("its source is started in time", lambda: _begun(writer.start()), 60)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Those that a query has committed, by the log of its sink: files that no commit names don't count."""
        return committed_rows(self.folder / name / "rows")

    def count(self, name: str) -> int:
        """How many rows a query has committed."""
        return committed(self.folder / name / "rows")

    def numbers(self, name: str) -> list[int]:
        """``n`` of each of these rows, sorted."""
        return sorted(json.loads(row["value"])["n"] for row in self.rows(name))

    def await_numbers(self, query: StreamingQuery, name: str, wanted: range | list[int], seconds: float = 60) -> None:
        """Wait for so many rows, and compare them."""

        def enough() -> bool:
            if query.exception() is not None:
                raise AssertionError(str(query.exception()))
            return self.count(name) >= len(wanted)

        wait_for(f"{len(wanted)} rows of {name}", enough, seconds, lambda: (self.count(name), query.lastProgress))
        assert self.numbers(name) == list(wanted)

    def await_rows_or_end(self, query: StreamingQuery, name: str, many: int) -> None:
        """Wait until there are so many rows, or the query has failed."""
        wait_for(
            f"{many} rows of {name}, or its end",
            lambda: query.exception() or self.count(name) >= many,
            60,
            lambda: (self.count(name), query.lastProgress),
        )

    def await_release(self) -> None:
        """Wait until the processes of readers whose query was stopped have ended: a moment after ``stop`` returns.

        Those of this session, as its failpoints tell: other tests run beside it.
        """

        def left() -> list[int]:
            found = psutil.process_iter(["cmdline", "environ"])
            ours = [p for p in found if (p.info["environ"] or {}).get(VARIABLE) == os.environ[VARIABLE]]
            return [p.pid for p in ours if "headgate.sharegroup.reader_process" in (p.info["cmdline"] or [])]

        wait_for("the readers have left", lambda: not left(), 30, left)

    @contextmanager
    def failing(self, **places: str) -> Iterator[list[Path]]:
        """``kill`` or ``sleep:<seconds>`` at places, once each; yields files that are there once it happened."""
        marks = []
        wanted: dict[str, str] = {}
        for place, what in places.items():
            mark = self.folder / f"{place}-{uuid.uuid4().hex}"
            wanted[place] = f"once:{mark}:{what}"
            marks.append(mark)
        file = Path(os.environ[VARIABLE])
        file.write_text(json.dumps(wanted))
        try:
            yield marks
        finally:
            file.write_text("{}")


def _begun(query: StreamingQuery) -> StreamingQuery | None:
    """The query once its source is up, or has failed; None when Spark has not waited for it."""
    wait_for("its source is started", lambda: query.exception() or "Initializing" not in query.status["message"], 60)
    return None if "Python worker failed to connect back" in str(query.exception()) else query


def committed_rows(folder: Path) -> list[dict[str, Any]]:
    """Of Spark's file sink, by its log."""
    return [row for file in _committed_files(folder) for row in pq.read_table(file).to_pylist()]


def committed(folder: Path) -> int:
    """How many rows these are: cheaper to ask than the rows."""
    return sum(map(_rows_in, _committed_files(folder)))


@functools.cache
def _rows_in(file: str) -> int:
    return int(pq.read_metadata(file).num_rows)


def _committed_files(folder: Path) -> list[str]:
    lines = [
        json.loads(line)
        for file in _since_compaction(folder / "_spark_metadata")
        for line in file.read_text().splitlines()[1:]
    ]
    return [unquote(urlsplit(line["path"]).path) for line in lines]


def _since_compaction(log: Path) -> list[Path]:
    """The files of a sink's log that count: every tenth holds those before it."""
    try:
        names = sorted((f.name for f in log.iterdir() if not f.name.startswith(".")), key=_batch)
    except FileNotFoundError:
        return []
    compact = [n for n in names if n.endswith(".compact")]
    first = _batch(compact[-1]) if compact else 0
    return [log / n for n in names if _batch(n) >= first]


def _batch(name: str) -> int:
    return int(name.removesuffix(".compact"))


def metrics_of(query: StreamingQuery) -> Mapping[str, Any]:
    """The last of a query that has made progress."""
    return wait_for("a progress with metrics", lambda: headgate.metrics(query))[0]


@contextmanager
def stopped(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stopped at the end, however it went."""
    try:
        yield query
    finally:
        with suppress(Exception):
            query.stop()
