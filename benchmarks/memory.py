"""The memory of one indexer with stored offsets while it works off a backlog at a small ``maxBytesInMemory``.

The hardest case: nothing is handed off before the whole backlog is read, so that all of it is one segment.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import await_rows, backlog, lost_and_duplicated, publishes, span
from benchmarks.stack import add_stack_options, stack
from tests.support.house import House

SAMPLE_S = 0.1
MIB = 1024 * 1024


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes and limits."""
    add_stack_options(parser)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--max-bytes", type=int, default=64 * MIB, help="tuningConfig.maxBytesInMemory")
    parser.add_argument("--handoff", default="PT30M", help="tuningConfig.intermediateHandoffPeriod")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One pass over the backlog; keys as documented in benchmarks/README.md."""
    tuning = {
        "maxBytesInMemory": options.max_bytes,
        "maxRowsPerSegment": options.records,
        "intermediateHandoffPeriod": options.handoff,
    }
    with stack(options) as house:
        topic = house.topic("memory")
        backlog(house, topic, options.records)
        house.supervise(house.kafka_spec(topic, "memory", tuning))
        with _sample_memory(house) as peak:
            await_rows(house, "memory", options.records)
        first, last = span(house, "memory")
        publish_count, segments = publishes(house, "memory")
        house.rest()
        lost, duplicated = lost_and_duplicated(house, "memory", options.records)
    return {
        "peak_rss_mb": peak.resident / MIB,
        "peak_uss_mb": peak.own / MIB,
        "peak_pss_mb": peak.proportional / MIB,
        "samples": peak.samples,
        "rows": options.records,
        "rows_per_s": options.records / (last - first).total_seconds(),
        "publishes": publish_count,
        "segments": segments,
        "lost": lost,
        "duplicated": duplicated,
        "max_bytes_in_memory": options.max_bytes,
        "handoff": options.handoff,
    }


@dataclass
class Peak:
    """Bytes. ``resident`` as the kernel keeps it, so that nothing between two samples is missed."""

    resident: int = 0
    own: int = 0
    proportional: int = 0
    samples: int = 0

    def take_sample(self, pid: int) -> None:
        """Take a sample; a process that is no more has none."""
        try:
            memory = psutil.Process(pid).memory_full_info()
            highest = _peak_rss(pid)
        except (psutil.Error, OSError):
            return
        self.resident = max(self.resident, highest)
        self.own = max(self.own, memory.uss)
        self.proportional = max(self.proportional, memory.pss)
        self.samples += 1


def _peak_rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


@contextmanager
def _sample_memory(house: House) -> Iterator[Peak]:
    """Samples the indexer's Python worker until the block ends."""
    peak = Peak()
    pid = house.indexer_pids(house.running_task("memory"))[0]
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_S):
            peak.take_sample(pid)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join(10)
    if not psutil.pid_exists(pid):
        raise RuntimeError("the indexer's worker was started again: its memory was not looked at to the end")
