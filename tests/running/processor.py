"""How much processor time a process and all that it started have used, and how busy the machine is besides."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def used_by(pid: int) -> float:
    """Seconds of the process, of all that live below it, and of those that they have waited for. Linux only: else 0."""
    seconds: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # After the name: state, parent, …; 11 to 14 are user and system time, own and of those waited for.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(folder.name))
        seconds[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS
    total, left = 0.0, [pid]
    while left:
        process = left.pop()
        total += seconds.get(process, 0.0)
        left += children[process]
    return total


def used_by_all() -> float:
    """Seconds of the whole machine since it was started, waiting aside. Linux only: else 0."""
    try:
        fields = [int(f) for f in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    except OSError:
        return 0.0
    return (sum(fields[:8]) - fields[3] - fields[4]) / _TICKS  # idle and iowait


def busy(seconds: float = 1.0) -> float:
    """The share of the machine's processors that is in use right now, from 0 to 1."""
    before, began = used_by_all(), time.monotonic()
    time.sleep(seconds)
    return (used_by_all() - before) / (time.monotonic() - began) / (os.cpu_count() or 1)
