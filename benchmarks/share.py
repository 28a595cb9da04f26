"""The share path against a bare ShareConsumer loop that polls and accepts, on the same records in the same run.

Rates count from the first record that arrived to the last that was settled, so that neither joining the group nor
starting Spark is part of them. Headgate's path is whole: decode, Parquet, publish over HTTP, acknowledge.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from benchmarks.measure import await_rows, lost_and_duplicated, median, records
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--indexers", type=int, default=4)
    parser.add_argument("--consumers", type=int, default=2, help="of each indexer")
    parser.add_argument("--locks", type=int, default=4_000, help="groupConfig.partitionMaxRecordLocks of the spec")
    parser.add_argument("--bare-records", type=int, help="max.poll.records of the bare loop; the client's if not given")
    parser.add_argument("--rounds", type=int, default=4, help="alternating; the medians are compared")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Alternates the bare loop and Headgate; keys as documented in benchmarks/README.md."""
    bare, headgate, batches = [], [], []
    lost = duplicated = 0
    with stack(options) as house:
        topic = house.topic("bench")
        house.produce(topic, records(options.records))
        for turn in range(options.rounds):
            bare.append(bare_rate(house, topic, f"bare-{turn}", options))
            rate, lost_rows, duplicated_rows = headgate_rate(house, topic, f"bench-{turn}", options)
            batches.append(options.records / house.totals(f"bench-{turn}")["publishes"])
            headgate.append(rate)
            lost, duplicated = lost + lost_rows, duplicated + duplicated_rows
            print(f"round {turn + 1}: bare {bare[-1]:,.0f} rows/s, headgate {rate:,.0f} rows/s", flush=True)
    bare_median, headgate_median = median(bare), median(headgate)
    return {
        "headgate_rows_per_s": headgate_median,
        "bare_rows_per_s": bare_median,
        "ratio": headgate_median / bare_median,
        "lost": lost,
        "duplicated": duplicated,
        "rows_per_publish": median(batches),
        "records": options.records,
        "locks": options.locks,
        "indexers": options.indexers,
        "consumers": options.consumers,
    }


def bare_rate(house: House, topic: str, group: str, options: argparse.Namespace) -> float:
    """Records per second of one ShareConsumer that polls and accepts, in a process of its own."""
    config = {"bootstrap.servers": house.bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    if options.bare_records is not None:
        config["max.poll.records"] = options.bare_records
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    for future in house.admin.incremental_alter_configs([resource]).values():
        future.result()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return options.records / pool.submit(_bare, config, topic, options.records).result(600)


def _bare(config: dict[str, Any], topic: str, count: int) -> float:
    """Seconds from the first record to the last."""
    consumer = ShareConsumer(config)
    consumer.subscribe([topic])
    received, began = 0, 0.0
    while received < count:
        for message in consumer.poll(1.0):
            if message.error() is None:
                began = began or time.monotonic()
                received += 1
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        consumer.commit_sync(10.0)
    seconds = time.monotonic() - began
    consumer.close()
    return seconds


def headgate_rate(house: House, topic: str, datasource: str, options: argparse.Namespace) -> tuple[float, int, int]:
    """(rows per second, lost, duplicated)."""
    spec = house.spec(
        topic,
        datasource,
        groupId=datasource,
        taskCount=options.indexers,
        consumersPerIndexer=options.consumers,
        lock_ms=30_000,
    )
    spec["ioConfig"]["groupConfig"]["partitionMaxRecordLocks"] = options.locks
    supervisor = house.supervise(spec)
    await_rows(house, datasource, options.records)
    seconds, first_rows = _span(house, datasource)
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
    house.rest()
    lost, duplicated = lost_and_duplicated(house, datasource, options.records)
    return (options.records - first_rows) / seconds, lost, duplicated


def _span(house: House, datasource: str) -> tuple[float, int]:
    """Seconds between the first publish and the last, and the rows of the first, which were read before it."""
    rows = house.sql(
        "SELECT s.created_at, sum(s.rows) FROM segments_segment s"
        " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s GROUP BY 1 ORDER BY 1",
        datasource,
    )
    return (rows[-1][0] - rows[0][0]).total_seconds(), int(rows[0][1])
