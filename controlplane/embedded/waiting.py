"""Waiting for a condition with a deadline, so that nothing here sleeps blindly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from controlplane.embedded.errors import Cancelled
from controlplane.embedded.files import try_lock

INTERVAL_S = 0.05
T = TypeVar("T")


def poll_until(
    condition: Callable[[], T],
    *,
    timeout_s: float,
    cancel: threading.Event | None = None,
    interval_s: float = INTERVAL_S,
) -> T:
    """The condition's first truthy answer.

    Raises TimeoutError after `timeout_s` seconds, Cancelled as soon as `cancel` is set.
    """
    deadline = time.monotonic() + timeout_s
    pause = cancel or threading.Event()
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not so within {timeout_s:g} seconds")
        if pause.wait(interval_s):
            raise Cancelled("stopped while starting")


@contextmanager
def file_lock(lock: Path, timeout_s: float, cancel: threading.Event | None) -> Iterator[None]:
    """Holds the file's lock among processes. Raises TimeoutError, Cancelled."""
    with lock.open("a") as file:
        poll_until(lambda: try_lock(file), timeout_s=timeout_s, cancel=cancel, interval_s=0.2)
        yield
