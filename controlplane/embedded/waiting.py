"""Waiting for a condition with a deadline, so that nothing here sleeps blindly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from controlplane.embedded.errors import Cancelled

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
