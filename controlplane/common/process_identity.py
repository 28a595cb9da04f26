"""Processes told apart from others by pid and start time, and stopped although they are not our children."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import psutil

# Start times are derived from the boot time, which moves a little when the clock is set.
SAME_START_S = 2.0
INTERVAL_S = 0.05

StopSteps = Sequence[tuple[signal.Signals, float]]
GENTLE: StopSteps = ((signal.SIGTERM, 10.0),)


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, for ever: a pid alone may name another process tomorrow. `create_time` is in seconds since 1970."""

    pid: int
    create_time: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """Raises psutil.NoSuchProcess when there is no such process."""
        return cls(pid, psutil.Process(pid).create_time())

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        """From `{"pid": …, "create_time": …}`; None when it is anything else."""
        try:
            return cls(int(value["pid"]), float(value["create_time"]))
        except (KeyError, TypeError, ValueError):
            return None

    def find(self) -> psutil.Process | None:
        """The process if it still runs (an ended one that nobody has waited for does not count)."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.create_time) <= SAME_START_S
            if same and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None

    def replaced(self) -> bool:
        """Whether the pid now belongs to another process."""
        with suppress(psutil.Error):
            return abs(psutil.Process(self.pid).create_time() - self.create_time) > SAME_START_S
        return False


def stop_identity(identity: Identity, steps: StopSteps = GENTLE) -> bool:
    """Stops a process that is not our child, then what is left of its process group. True when there was something."""
    ran = False
    for number, grace_s in (*steps, (signal.SIGKILL, 5.0)):
        process = identity.find()
        if process is None:
            break
        ran = True
        with suppress(psutil.Error):
            process.send_signal(number)
        _wait(identity, grace_s)
    return _kill_rest_of_group(identity) or ran


def _wait(identity: Identity, seconds: float) -> None:
    """No longer than until it has ended."""
    end = time.monotonic() + seconds
    while identity.find() and time.monotonic() < end:
        time.sleep(INTERVAL_S)


def _kill_rest_of_group(leader: Identity) -> bool:
    """SIGKILL for those the leader left behind. While any of them lives its pid is not given out again as a group."""
    if leader.replaced() or leader.find():
        return False
    ran = False
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == leader.pid and process.create_time() >= leader.create_time - SAME_START_S:
                process.kill()
                ran = True
    return ran
