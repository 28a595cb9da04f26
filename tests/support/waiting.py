"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 2.5  # times the seconds that are enough on a calm machine: a deadline is for what never comes


def wait_for(
    what: str, condition: Callable[..., T | None], seconds: float = 90.0, explain: Callable[..., Any] = str
) -> T:
    """The condition's first true value. Fails with ``what`` and the explanation when the time is over.

    ``seconds``: enough for it on a calm machine.

    Both are called without arguments; a lambda in a loop binds the loop's variable as a default.
    """
    end = time.monotonic() + PATIENCE * seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE * seconds:.0f} s: {what}. {explain()}")
        time.sleep(0.2)


def await_a_long_day(seconds: float = 60.0) -> None:
    """So much is left of the day, in UTC: a test that compares dates begins and ends on the same one."""

    def left() -> bool:
        now = datetime.now(UTC)
        return (now + timedelta(seconds=seconds)).date() == now.date()

    wait_for("midnight has passed", left, seconds)
