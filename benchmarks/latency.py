"""From produce to visible: how long a record of a steady trickle takes to stand in a segment; and the sampler.

Every record carries the time at which it was handed to the producer. A segment is visible when another connection to
the metadata store sees its row; that is looked at every 20 ms, so that a figure is up to 20 ms too high, never too low.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pyarrow.parquet as pq

from benchmarks.measure import await_rows, lost_and_duplicated, percentile
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House

POLL_S = 0.02
STEP_S = 0.01
WARM_UP_S = 5
SAMPLES = 20
SAMPLED = 100  # records
_SEGMENTS = (
    "SELECT s.id, s.path FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id"
    " WHERE d.name = %s"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes."""
    add_stack_options(parser)
    parser.add_argument("--rate", type=int, default=200, help="records a second")
    parser.add_argument("--seconds", type=int, default=60, help="of each run")
    parser.add_argument("--handoff", help="intermediateHandoffPeriod of the offset ranges; without it as it comes")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """A share group, then offset ranges; keys as documented in benchmarks/README.md."""
    results: dict[str, Any] = {"lost": 0, "duplicated": 0}
    tuning = {"intermediateHandoffPeriod": options.handoff}
    with stack(options) as house:
        for name in ("share", "offsets"):
            topic = house.topic(name)
            spec = house.spec(topic, name, lock_ms=30_000) if name == "share" else house.kafka_spec(topic, name, tuning)
            seconds, lost, duplicated = _latencies(house, spec, topic, name, options)
            results |= {f"{name}_p{p}_s": percentile(seconds, p / 100) for p in (50, 99)}
            results |= {"lost": results["lost"] + lost, "duplicated": results["duplicated"] + duplicated}
        results |= _sampler(house, house.kafka_spec(topic, "sampled"))
    return {**results, "rate": options.rate, "seconds": options.seconds, "handoff": options.handoff}


def _latencies(
    house: House, spec: dict[str, Any], topic: str, datasource: str, options: argparse.Namespace
) -> tuple[list[float], int, int]:
    """Seconds of every record after the warm-up; how many were lost, how many duplicated."""
    house.supervise(spec)
    house.running_task(datasource)
    warm = options.rate * WARM_UP_S
    count = warm + options.rate * options.seconds
    with _watch(house, datasource) as visible_at:
        _trickle(house, topic, 0, warm, options.rate)
        await_rows(house, datasource, warm)
        _trickle(house, topic, warm, count, options.rate)
        await_rows(house, datasource, count)
    house.rest()
    return _seconds(house, visible_at, warm, count), *lost_and_duplicated(house, datasource, count)


def _sampler(house: House, spec: dict[str, Any]) -> dict[str, Any]:
    """Seconds from the question to the answer, of records that are pasted and of the last ones of a topic."""
    pasted = "\n".join(json.dumps({"time": "2025-06-01T00:00:00.000Z", "n": n}) for n in range(SAMPLED))
    inline = {"inputSource": {"type": "inline", "data": pasted}, "inputFormat": {"type": "json"}}
    topic = {**spec["ioConfig"], "useEarliestOffset": False}
    results: dict[str, Any] = {}
    for name, kind, io_config in (("pasted", "inline", inline), ("topic", spec["type"], topic)):
        body = {"type": kind, "spec": {"dataSchema": spec["dataSchema"], "ioConfig": io_config}}
        seconds = [_time_sampler(house, {**body, "samplerConfig": {"numRows": SAMPLED}}) for _ in range(SAMPLES)]
        results |= {f"sampler_{name}_p50_s": percentile(seconds, 0.5), f"sampler_{name}_max_s": max(seconds)}
    return results


def _time_sampler(house: House, body: dict[str, Any]) -> float:
    began = time.monotonic()
    answer = house.api("POST", "/api/v1/sampler/", body)
    if answer["outcomes"] != {"stored": SAMPLED}:
        raise RuntimeError(f"the sampler did not read its records: {answer['outcomes']}")
    return time.monotonic() - began


def _trickle(house: House, topic: str, first: int, last: int, rate: int) -> None:
    """Records ``first`` … ``last - 1``, as many each second as the rate says."""
    began = time.monotonic()
    for n in range(first, last):
        while time.monotonic() < began + (n - first) / rate:
            house.producer.poll(0)
            time.sleep(STEP_S)
        record = {"time": "2025-06-01T00:00:00.000Z", "n": n, "sent": time.time()}
        house.producer.produce(topic, value=json.dumps(record).encode())
    house.producer.flush(60)


@contextmanager
def _watch(house: House, datasource: str) -> Iterator[dict[str, float]]:
    """Fills in when (``time.time``) each segment's path was first seen."""
    visible_at: dict[str, float] = {}
    ended = threading.Event()

    def poll() -> None:
        with psycopg.connect(house.postgres.dsn, autocommit=True) as connection:
            while True:
                last = ended.is_set()
                rows = connection.execute(_SEGMENTS, (datasource,)).fetchall()
                now = time.time()
                for _, path in rows:
                    visible_at.setdefault(path, now)
                if last:
                    return
                ended.wait(POLL_S)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield visible_at
    finally:
        ended.set()
        thread.join(30)


def _seconds(house: House, visible_at: dict[str, float], first: int, last: int) -> list[float]:
    """Of records ``first`` … ``last - 1``, until the first segment with it was seen: later ones are merges."""
    seconds = np.full(last, np.inf)
    for path, seen_at in visible_at.items():
        table = pq.read_table(house.home.segments / path, columns=["n", "sent"])
        np.minimum.at(seconds, np.asarray(table["n"]), seen_at - np.asarray(table["sent"]))
    return [float(s) for s in seconds[first:]]
