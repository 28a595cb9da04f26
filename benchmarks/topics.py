"""Many small topics in one application: its memory, and whether every record is stored once.

A ``topicPattern`` matches all topics; each gets ``--rate`` records a second for ``--seconds``. Memory is that of the
application's processes, shared memory counted once, by the second.
"""

from __future__ import annotations

import argparse
import threading
import time
from typing import Any

import psutil

from benchmarks.measure import await_rows, lost_and_duplicated, percentile, published, record
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House
from tests.support.waiting import wait_for

DATASOURCE = "topics"
_READING = (
    "SELECT count(DISTINCT t.id) FROM tasks_task t JOIN tasks_indexer i ON i.task_id = t.id"
    " WHERE t.status = 'RUNNING' AND i.state = 'reading'"
)
_TASKS = "SELECT id FROM tasks_task WHERE kind NOT IN ('repair', 'replay') ORDER BY created_at"


def add_options(parser: argparse.ArgumentParser) -> None:
    """How many topics, and how much comes into them."""
    add_stack_options(parser)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--rate", type=float, default=1.0, help="records a second into each topic")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--handoff", default="PT30S", help="tuningConfig.intermediateHandoffPeriod")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Keys as documented in benchmarks/README.md."""
    with stack(options) as house, house.set_up_with(HEADGATE_TOPICS_PER_SUPERVISOR=str(options.topics)):
        topics = [house.topic(f"many-{n}", partitions=1) for n in range(options.topics)]
        submitted = time.monotonic()
        house.supervise(_spec(house, topics[0], options))
        wait_for("all topics are read", lambda: house.sql(_READING)[0][0] >= options.topics, 600)
        all_reading_s = time.monotonic() - submitted
        tasks = [str(task) for (task,) in house.sql(_TASKS)]
        applications = {house.application_pid(task) for task in tasks} - {None}
        memory = Memory({pid for pid in applications if pid is not None})
        records = _produce(house, topics, options)
        await_rows(house, DATASOURCE, records)
        peak = memory.end()
        stored = published(house, DATASOURCE)
        house.rest()
        lost, duplicated = lost_and_duplicated(house, DATASOURCE, records)
    return {
        "topics": options.topics,
        "applications": len(applications),
        "tasks": len(tasks),
        "peak_pss_mb": max(peak),
        "median_pss_mb": percentile(peak, 0.5),
        "cpu_cores": memory.cpu_s / memory.elapsed_s,
        "all_reading_s": all_reading_s,
        "records": records,
        "stored": stored,
        "lost": lost,
        "duplicated": duplicated,
        "rate": options.rate,
        "seconds": options.seconds,
    }


def _spec(house: House, topic: str, options: argparse.Namespace) -> dict[str, Any]:
    spec = house.kafka_spec(topic, DATASOURCE, {"intermediateHandoffPeriod": options.handoff})
    del spec["ioConfig"]["topic"]
    spec["ioConfig"] |= {"topicPattern": "many-.*", "smallTopicRate": max(10.0, 10 * options.rate)}
    return spec


def _produce(house: House, topics: list[str], options: argparse.Namespace) -> int:
    """Numbered throughout; returns how many."""
    began, number = time.monotonic(), 0
    for turn in range(int(options.seconds * options.rate)):
        time.sleep(max(0.0, began + turn / options.rate - time.monotonic()))
        for topic in topics:
            house.producer.produce(topic, value=record(number))
            number += 1
        house.producer.poll(0)
    if left := house.producer.flush(60):
        raise RuntimeError(f"the broker took all but {left} records")
    return number


class Memory:
    """Samples the processes of some applications, each second until the end."""

    def __init__(self, pids: set[int]) -> None:
        self._first = [psutil.Process(pid) for pid in pids]
        self._samples: list[float] = []
        self._ended = threading.Event()
        self._began, self._cpu_before = time.monotonic(), self._cpu()
        self.cpu_s = self.elapsed_s = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> list[float]:
        """MiB, one sample a second."""
        self._ended.set()
        self._thread.join(30)
        self.cpu_s, self.elapsed_s = self._cpu() - self._cpu_before, time.monotonic() - self._began
        return self._samples

    def _run(self) -> None:
        while not self._ended.is_set():
            self._samples.append(sum(_pss_mb(p) for p in self._all()))
            self._ended.wait(1.0)

    def _all(self) -> list[psutil.Process]:
        return [p for first in self._first for p in (first, *first.children(recursive=True))]

    def _cpu(self) -> float:
        times = [p.cpu_times() for p in self._all()]
        return sum(t.user + t.system for t in times)


def _pss_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 2**20
    except psutil.Error:
        return 0.0
