"""A share group at full speed with automatic compaction beside it, against the same without, before it and after it."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from confluent_kafka import Producer

from benchmarks.measure import PARTITIONS, backlog_of, median
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House
from tests.support.waiting import wait_for

SAMPLE_S = 2.0
CONFIG = "/druid/coordinator/v1/config/compaction"
_MINUTES_RATIO = 4  # the minutes with compaction ÷ those without, each time
_LAST_S = 300.0
_PRODUCERS = 2

_NOW = """
    SELECT coalesce(sum(f.published), 0), coalesce(sum(f.segments), 0),
           (SELECT count(*) FROM segments_segment s WHERE s.datasource_id = d.id AND s.used)
    FROM datasources_datasource d LEFT JOIN publishing_indexerfence f ON f.datasource_id = d.id
    WHERE d.name = %s GROUP BY d.id
"""
_MERGED = """
    SELECT coalesce(sum(j.rows_before * greatest(j.attempt, 1)), 0), count(*) FILTER (WHERE j.state = 'done')
    FROM compaction_job j JOIN datasources_datasource d ON d.id = j.datasource_id
    WHERE d.name = %s AND j.state IN ('done', 'failed', 'refused')
"""
_SETTLED = """
    SELECT coalesce(sum(upper(r.span) - lower(r.span)), 0)
    FROM publishing_settledrange r JOIN publishing_progresskey k ON k.id = lower(r.span) >> 44
    JOIN sources_source o ON o.id = k.source_id JOIN datasources_datasource d ON d.id = o.datasource_id
    WHERE d.name = %s
"""
_LIVE = """
    SELECT s.path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE s.used AND d.name = %s
"""


@dataclass(frozen=True)
class Sample:
    """At a datasource, at a time."""

    at: float
    rows: int  # that ingestion has published
    segments: int  # and in how many
    live: int  # in use


@dataclass(frozen=True)
class Phase:
    """What was seen of one datasource while it was read at full speed."""

    samples: list[Sample]
    lost: int
    duplicated: int

    @property
    def rate(self) -> float:
        """Rows a second, from the first look to the last."""
        first, last = self.samples[0], self.samples[-1]
        return (last.rows - first.rows) / (last.at - first.at)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--minutes", type=float, default=10.0, help="with compaction; a quarter without, twice")
    parser.add_argument("--records-per-minute", type=int, default=15_000_000, help="what there is to read, at most")
    parser.add_argument("--indexers", type=int, default=4)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    with stack(options) as house:
        topic = house.topic("beside", PARTITIONS)
        count = int(options.records_per_minute * options.minutes)
        _produce(house.bootstrap, topic, count)
        before = _phase(house, topic, "before", count, options.minutes / _MINUTES_RATIO, options)
        beside = _phase(house, topic, "beside", count, options.minutes, options)
        written, merges = house.sql(_MERGED, "beside")[0]
        after = _phase(house, topic, "after", count, options.minutes / _MINUTES_RATIO, options)
    alone = median([before.rate, after.rate])
    ingested = beside.samples[-1].rows
    return {
        "ingestion_rows_per_s": beside.rate,
        "ingestion_alone_rows_per_s": alone,
        "ingestion_alone_before_rows_per_s": before.rate,
        "ingestion_alone_after_rows_per_s": after.rate,
        "ratio_ingestion": beside.rate / alone,
        "live_segments": beside.samples[-1].live,
        "most_live_segments": max(sample.live for sample in beside.samples),
        "live_segments_each_minute": _each_minute(beside.samples),
        "live_segments_last_5_min_growth": growth(beside.samples),
        "segments_ingested": beside.samples[-1].segments,
        "merges": merges,
        "write_amplification": (ingested + int(written)) / ingested,
        "minutes": (beside.samples[-1].at - beside.samples[0].at) / 60,
        "lost": sum(p.lost for p in (before, beside, after)),
        "duplicated": sum(p.duplicated for p in (before, beside, after)),
    }


def growth(samples: list[Sample]) -> float:
    """By how much the segments in use grew, of those that ingestion wrote meanwhile: 0 is level, 1 is unmerged.

    Of the last five minutes, or the last half of a shorter run; by the straight line through all looks, as merges come
    in steps.
    """
    end = samples[-1].at
    last = [sample for sample in samples if end - sample.at <= min(_LAST_S, (end - samples[0].at) / 2)]
    at = np.array([sample.at - last[0].at for sample in last])
    slope = float(np.polyfit(at, [sample.live for sample in last], 1)[0])
    return slope * float(at[-1]) / max(1, last[-1].segments - last[0].segments)


def _each_minute(samples: list[Sample]) -> str:
    minutes = {int((sample.at - samples[0].at) // 60): sample.live for sample in samples}
    return " ".join(map(str, minutes.values()))


def _produce(bootstrap: str, topic: str, count: int) -> None:
    """The backlog that every phase reads from its start, by processes of their own."""
    began = time.monotonic()
    with ProcessPoolExecutor(_PRODUCERS, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(_produce_some, bootstrap, topic, count, n) for n in range(_PRODUCERS)]:
            done.result()
    print(f"{count:,} records produced in {time.monotonic() - began:.0f} s", flush=True)


def _produce_some(bootstrap: str, topic: str, count: int, producer: int) -> None:
    mine = range(producer, PARTITIONS, _PRODUCERS)
    config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 50, "compression.type": "lz4"}
    backlog_of(Producer(config), topic, count, mine)


def _phase(house: House, topic: str, name: str, count: int, minutes: float, options: argparse.Namespace) -> Phase:
    """The topic into a datasource of its own for so long, or to its end. Only "beside" is compacted."""
    supervisor = house.supervise(_spec(house, topic, name, options))
    if name != "beside":
        house.api("DELETE", f"{CONFIG}/{name}")
    wait_for("the first rows", lambda: _take_sample(house, name).rows, 300, lambda: house.logs(name))
    samples = [_take_sample(house, name)]
    while samples[-1].at - samples[0].at < 60 * minutes and samples[-1].rows < count:
        time.sleep(SAMPLE_S)
        samples.append(_take_sample(house, name))
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
    house.rest()
    _end_compaction(house, name)
    phase = Phase(samples, *_lost_and_duplicated(house, name, count))
    print(f"{name}: {phase.rate:,.0f} rows/s, {samples[-1].live:,} segments in use", flush=True)
    return phase


def _spec(house: House, topic: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    spec = house.spec(topic, name, groupId=name, taskCount=options.indexers, lock_ms=30_000)
    spec["ioConfig"]["groupConfig"]["partitionMaxRecordLocks"] = 4_000
    return spec


def _take_sample(house: House, name: str) -> Sample:
    [(rows, segments, live)] = house.sql(_NOW, name)
    return Sample(time.monotonic(), int(rows), int(segments), live)


def _end_compaction(house: House, name: str) -> None:
    """Nothing is merged any more while others are measured."""
    if name == "beside":
        house.api("DELETE", f"{CONFIG}/{name}")
    running = "SELECT 1 FROM tasks_resident WHERE ended_at IS NULL"
    wait_for("the application of compaction has ended", lambda: not house.sql(running), 300, lambda: house.sql(running))


def _lost_and_duplicated(house: House, name: str, count: int) -> tuple[int, int]:
    """Of the offsets that are settled, those in no segment in use; and rows that are there once too often."""
    [(settled,)] = house.sql(_SETTLED, name)
    times = np.zeros(count, dtype=np.uint8)
    for (path,) in house.sql(_LIVE, name):
        numbers = pq.read_table(house.home.segments / path, columns=["n"])["n"].to_numpy()
        unique, counts = np.unique(numbers, return_counts=True)
        times[unique] += counts.astype(np.uint8)
    distinct = int((times > 0).sum())
    return int(settled) - distinct, int(times.sum(dtype=np.int64)) - distinct
