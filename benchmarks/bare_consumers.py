"""A consumer for each partition, each in a process of its own, that reads the records' values and does nothing else."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from benchmarks.measure import PARTITIONS

AT_ONCE = 20_000
TIMEOUT_S = 600.0
_barrier: threading.Barrier


# The client looks once a second whether a queue that was full has room again.
TUNED = {"fetch.queue.backoff.ms": 20}


def bare_rate(bootstrap: str, topic: str, count: int, config: Mapping[str, Any]) -> float:
    """Records a second, from the first record of any process to the last of any. ``config``: beyond the defaults."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PARTITIONS)
    with ProcessPoolExecutor(PARTITIONS, context, _set_barrier, (barrier,)) as pool:
        spans = list(pool.map(partial(_read, bootstrap, topic, config), range(PARTITIONS)))
    return count / (max(last for _, last in spans) - min(first for first, _ in spans))


def _set_barrier(barrier: threading.Barrier) -> None:
    global _barrier
    _barrier = barrier


def _read(bootstrap: str, topic: str, config: Mapping[str, Any], partition: int) -> tuple[float, float]:
    """When the first record and the last one had been read (``time.monotonic``, one clock for all processes)."""
    defaults = {"bootstrap.servers": bootstrap, "group.id": "bare", "enable.auto.commit": False}
    consumer = Consumer({**defaults, **config})
    beginning = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(beginning, 30.0)
    _barrier.wait(TIMEOUT_S)
    consumer.assign([beginning])
    read, first = 0, 0.0
    while read < end:
        values = [m.value() for m in consumer.consume(AT_ONCE, 0.1) if m.error() is None]
        if values:
            first = first or time.monotonic()
            read += len(values)
    last = time.monotonic()
    consumer.close()
    return first, last
