"""``kafka-sharegroup`` against Spark's own Kafka source and bare ShareConsumers, all into the same Parquet.

Alternating, on the same records in the same run. Rates count from the first record that a share consumer was given, or
the start of the micro-batch, to the last commit: to join a group takes a share consumer five seconds and is no reading.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks.measure import PARTITIONS, median, records
from controlplane.embedded.home import PROJECT, temporary_home
from controlplane.embedded.kafka import Kafka
from headgate.sharegroup.columns import as_batch, schema

SLOTS = 12
SLOW_MS = 1.0
IN_A_ROW = 2_000
FEW = 4_800
BROKER = {"group.share.max.size": "1000"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--slow-records", type=int, default=240_000, help="with 1 ms of work each")
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 4, 12])
    parser.add_argument("--processes", type=int, nargs="+", help="compare these readerProcesses, with 4 readers each")
    parser.add_argument("--rounds", type=int, default=3, help="alternating; the medians are compared")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the rates as PNG (needs matplotlib)")
    parser.add_argument("--bootstrap", help="use this Kafka instead of an own one, for example 127.0.0.1:9092")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    with temporary_home() as home, broker(options.bootstrap, home) as bootstrap, spark_peer() as peer:
        bench = Bench(bootstrap, peer)
        results = compare_processes(bench, options) if options.processes else compare_rates(bench, options)
    if options.plot and not options.processes:
        draw(results, options.plot)
    return results


@contextmanager
def broker(bootstrap: str | None, home: Any) -> Iterator[str]:
    """With its default limits, or one that runs."""
    if bootstrap:
        yield bootstrap
        return
    kafka = Kafka(home, BROKER)
    kafka.start()
    try:
        kafka.wait_ready()
        yield kafka.bootstrap
    finally:
        kafka.stop()


@contextmanager
def spark_peer() -> Iterator[subprocess.Popen[str]]:
    """The process of ``connector_peer``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.connector_peer", str(SLOTS), folder]
        pipe = subprocess.PIPE
        peer = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=PROJECT)
        try:
            yield peer
        finally:
            assert peer.stdin is not None
            peer.stdin.close()
            peer.wait(60)


class Bench:
    """Topics, groups, and passes over them."""

    def __init__(self, bootstrap: str, peer: subprocess.Popen[str]) -> None:
        self.bootstrap = bootstrap
        self._peer = peer
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._answer()
        self._warm: set[str] = set()
        self.small_topic = self.topic(FEW)
        self.lost = self.duplicated = 0

    def topic(self, count: int) -> str:
        """A new one with so many records, the same number in each partition."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self._admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(30)
        for n, payload in enumerate(records(count)):
            while True:
                try:
                    self._producer.produce(
                        name, payload, partition=n // min(IN_A_ROW, count // PARTITIONS) % PARTITIONS
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.flush(120)
        return name

    def spark(self, source: str, topic: str, count: int, ms: float = 0.0, **options: Any) -> float:
        """Records a second; what was lost or came twice is counted."""
        kind = f"{source} {ms} {options}"
        if kind not in self._warm:  # the JVM, and as many Python workers as there are tasks
            self._pass(source, self.small_topic, FEW, ms, **options)
            self._warm.add(kind)
        return count / self._pass(source, topic, count, ms, **options)

    def _pass(self, source: str, topic: str, count: int, ms: float, **options: Any) -> float:
        with tempfile.TemporaryDirectory() as folder:
            defaults = {"startingOffsets": "earliest", "kafka.max.poll.records": "20000"}
            if source == "kafka-sharegroup":
                defaults = {"shareGroupId": f"g-{uuid.uuid4().hex}", "groupAutoOffsetReset": "earliest"}
                defaults["maxUncommittedBytes"] = "4g"
            all_options = {
                "kafka.bootstrap.servers": self.bootstrap,
                **defaults,
                **{k: str(v) for k, v in options.items()},
            }
            line = {"source": source, "topic": topic, "options": all_options, "folder": folder, "ms": ms}
            assert self._peer.stdin is not None
            self._peer.stdin.write(json.dumps(line) + "\n")
            self._peer.stdin.flush()
            seconds = float(self._answer()["seconds"])
            self._check(folder + "/rows", count)
        return seconds

    def _answer(self) -> dict[str, Any]:
        assert self._peer.stdout is not None
        line = self._peer.stdout.readline()
        if not line:
            raise RuntimeError("the Spark application has ended: see its output")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def plain_rate(self, topic: str, count: int, consumers: int, sink: bool = True) -> float:
        """Records a second of as many ShareConsumers, each in a process of its own, from the first to the last."""
        group = f"bare-{uuid.uuid4().hex}"
        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(30)
        context = multiprocessing.get_context("spawn")
        counter = context.Value("q", 0)
        with (
            tempfile.TemporaryDirectory() as folder,
            ProcessPoolExecutor(consumers, context, _set_counter, (counter,)) as pool,
        ):
            jobs = [
                pool.submit(_bare, self.bootstrap, group, topic, count, folder if sink else None)
                for _ in range(consumers)
            ]
            spans = [span for job in jobs if (span := job.result(900))[0]]
            if sink:
                self._check(folder, count)
        return count / (max(last for _, last in spans) - min(first for first, _ in spans))

    def _check(self, folder: str, count: int) -> None:
        query = f"SELECT count(*), count(DISTINCT (partition, \"offset\")) FROM '{folder}/*.parquet'"
        with duckdb.connect() as connection:
            counts = connection.execute(query).fetchone()
        assert counts is not None
        self.lost += count - counts[1]
        self.duplicated += counts[0] - counts[1]


_received: Any = None


def _set_counter(counter: Any) -> None:
    global _received
    _received = counter


def _bare(bootstrap: str, group: str, topic: str, count: int, folder: str | None) -> tuple[float, float]:
    """When this consumer had its first record, and when its last was accepted and written."""
    config = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer({**config, "max.poll.records": 4_000})
    consumer.subscribe([topic])
    writer = pq.ParquetWriter(f"{folder}/{uuid.uuid4()}.parquet", schema(False)) if folder else None
    first = last = 0.0
    batches: list[pa.RecordBatch] = []
    while _received.value < count:
        messages = [m for m in consumer.poll(0.2) if m.error() is None]
        if not messages:
            continue
        first = first or time.monotonic()
        if writer:
            batches.append(as_batch(messages, False))
            if len(batches) >= 50:
                writer.write_table(pa.Table.from_batches(batches))
                batches = []
        for message in messages:
            consumer.acknowledge(message)
        with _received.get_lock():
            _received.value += len(messages)
        last = time.monotonic()
    if writer:
        if batches:
            writer.write_table(pa.Table.from_batches(batches))
            last = time.monotonic()
        writer.close()
    consumer.close()
    return first, last


def compare_rates(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """The comparison."""
    topic, slow = bench.topic(options.records), bench.topic(options.slow_records)
    rates: dict[str, list[float]] = {}

    def note(name: str, rate: float) -> None:
        rates.setdefault(name, []).append(rate)
        print(f"{name}: {rate:,.0f} rows/s", flush=True)

    for _ in range(options.rounds):
        note("spark_kafka", bench.spark("kafka", topic, options.records))
        for readers in options.readers:
            ours = bench.spark("kafka-sharegroup", topic, options.records, numReaders=readers, numTasks=PARTITIONS)
            note(f"sharegroup_{readers}", ours)
            note(f"bare_{readers}", bench.plain_rate(topic, options.records, readers))
        note("bare_without_sink", bench.plain_rate(topic, options.records, PARTITIONS, sink=False))
        note("slow_spark_kafka", bench.spark("kafka", slow, options.slow_records, SLOW_MS))
        for readers in (PARTITIONS, SLOTS):
            rate = bench.spark("kafka-sharegroup", slow, options.slow_records, SLOW_MS, numReaders=readers)
            note(f"slow_sharegroup_{readers}", rate)
    medians = {name: median(values) for name, values in rates.items()}
    main = 4 if 4 in options.readers else options.readers[0]
    ratios = {f"ratio_bare_{n}": medians[f"sharegroup_{n}"] / medians[f"bare_{n}"] for n in options.readers}
    return {
        "rows_per_s": medians[f"sharegroup_{main}"],
        "bare_rows_per_s": medians[f"bare_{main}"],
        "spark_kafka_rows_per_s": medians["spark_kafka"],
        "ratio_bare": ratios[f"ratio_bare_{main}"],
        "ratio_spark_kafka": medians[f"sharegroup_{main}"] / medians["spark_kafka"],
        "slow_work_ratio_12_readers": medians[f"slow_sharegroup_{SLOTS}"] / medians["slow_spark_kafka"],
        "lost": bench.lost,
        "duplicated": bench.duplicated,
        **ratios,
        **{f"{name}_rows_per_s": rate for name, rate in medians.items()},
        "records": options.records,
    }


def compare_processes(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Where readers live: threads of the source process (0), or so many processes."""
    topic = bench.topic(options.records)
    rates: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for processes in options.processes:
            reader_options = {"numReaders": 4, "numTasks": PARTITIONS, "readerProcesses": processes}
            rate = bench.spark("kafka-sharegroup", topic, options.records, **reader_options)
            rates.setdefault(f"processes_{processes}_rows_per_s", []).append(rate)
            print(f"{processes} processes: {rate:,.0f} rows/s", flush=True)
    medians = {name: median(values) for name, values in rates.items()}
    return {**medians, "lost": bench.lost, "duplicated": bench.duplicated, "records": options.records}


def draw(results: dict[str, Any], file: Path) -> None:
    """Two groups of bars: reading alone, and with a millisecond of work for each record."""
    import matplotlib  # not at the top: only the plot needs it, and only developers have it

    matplotlib.use("Agg")
    from matplotlib import pyplot  # not at the top: only the plot needs it, and only developers have it

    plain = [n.removesuffix("_rows_per_s") for n in results if n.endswith("_rows_per_s")]
    reading = [n for n in plain if n.startswith(("spark_kafka", "sharegroup_", "bare_")) and n != "bare"]
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), width_ratios=(2, 1))
    for axis, names, title in (
        (axes[0], reading, f"{results['records']:,} records of 100 bytes, 4 partitions"),
        (axes[1], [n for n in plain if n.startswith("slow_")], "the same with 1 ms of work a record"),
    ):
        labels = [n.removeprefix("slow_").replace("_", " ") for n in names]
        colours = ["#2f6f9f" if "sharegroup" in n else "#9aa5ae" for n in names]
        axis.barh(labels, [results[f"{n}_rows_per_s"] for n in names], color=colours)
        axis.invert_yaxis()
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("rows a second")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
