"""Headgate's decoder against Spark's own functions, format by format, on the same records in the same run.

Rates are rows per second of processor time: what else the machine does changes them little. Each side has one thread;
Spark's processor time is that of its JVM, garbage collection included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from benchmarks.formats import Case, cases, envelope, values
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.segments.rollup import roll_up
from ingestion.segments.table_shape import Shape
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.schema.data_schema import DataSchema

BATCH = 3_400  # what an indexer publishes at once: see benchmarks/README.md
_FORMAT: TypeAdapter[InputFormat] = TypeAdapter(InputFormat)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5, help="alternating, after one to warm up; medians are compared")
    parser.add_argument("--only", nargs="*", default=[], metavar="FORMAT", help="these alone")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md; None where Spark has nothing without further jars."""
    chosen = [case for case in cases() if not options.only or case.name in options.only]
    results: dict[str, Any] = {}
    with _spark() as spark:
        for case in chosen:
            results |= _compare(spark, case, options)
    return {**results, "records": options.records, "batch": BATCH}


def _compare(spark: SparkSession, case: Case, options: argparse.Namespace) -> dict[str, Any]:
    payloads = [case.payload(record) for record in values(options.records)]
    headgate, others = _Headgate(case), _Spark(spark, case, payloads)
    ours, theirs = [], []
    for turn in range(options.rounds + 1):
        mine, its = headgate.rate(payloads), others.rate()
        if turn:
            ours.append(mine)
            theirs.append(its)
    headgate.close()
    others.close()
    rate, other = _median(ours), None if case.spark is None else _median([t for t in theirs if t is not None])
    print(f"{case.name}: headgate {rate:,.0f} rows/s, spark {'-' if other is None else f'{other:,.0f}'}", flush=True)
    return {
        f"{case.name}_headgate_rows_per_s": rate,
        f"{case.name}_spark_rows_per_s": other,
        f"{case.name}_ratio": None if other is None else rate / other,
    }


def _median(rates: Sequence[float]) -> float:
    ordered = sorted(rates)
    return ordered[len(ordered) // 2]


class _Headgate:
    """Decodes in an indexer's way: batch by batch, and rolled up where the spec says so."""

    def __init__(self, case: Case) -> None:
        self._schema = DataSchema.model_validate(case.schema)
        self._shape = Shape.of(self._schema)
        self._decoder = JsonDecoder(self._schema, input_format=_FORMAT.validate_python(case.input_format))
        self._in_envelope = case.in_envelope

    def rate(self, payloads: Sequence[bytes]) -> float:
        began, rows = time.process_time(), 0
        for start in range(0, len(payloads), BATCH):
            batch = payloads[start : start + BATCH]
            decoded = self._decoder.decode(batch, envelope=envelope(len(batch)) if self._in_envelope else None)
            rows += len(decoded.rows) + len(decoded.filtered)
            if self._schema.granularitySpec.rollup:
                roll_up(self._shape.to_shape(decoded.rows), self._shape)
        if rows != len(payloads):
            raise RuntimeError(
                f"{len(payloads) - rows} records were not decoded: {next(iter(decoded.unparseable), '')}"
            )
        return len(payloads) / (time.process_time() - began)

    def close(self) -> None:
        self._decoder.close()


class _Spark:
    """The SQL of a case over a cached column of texts, into a sink that keeps nothing."""

    def __init__(self, spark: SparkSession, case: Case, payloads: Sequence[bytes]) -> None:
        self._spark = spark
        self._sql = case.spark
        self._count = len(payloads)
        gateway: Any = spark.sparkContext._gateway
        self._jvm = psutil.Process(gateway.proc.pid)
        if self._sql is not None:
            table = pa.table({"value": pa.array([p.decode() for p in payloads], pa.string())})
            self._records = spark.createDataFrame(table).coalesce(1).cache()
            self._records.createOrReplaceTempView("records")
            self._records.count()

    def rate(self) -> float | None:
        if self._sql is None:
            return None
        began = self._processor_s()
        self._spark.sql(self._sql).write.format("noop").mode("overwrite").save()
        return self._count / (self._processor_s() - began)

    def close(self) -> None:
        if self._sql is not None:
            self._records.unpersist(blocking=True)

    def _processor_s(self) -> float:
        total = 0.0
        for process in (self._jvm, *self._jvm.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                times = process.cpu_times()
                total += times.user + times.system
        return total


@contextmanager
def _spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[1]").appName("decode").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
