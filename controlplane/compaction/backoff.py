"""When what has failed in an interval is tried again: later and later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.common.health import Code, Health

MAX_FAILURES = 20  # recent ones, that a pause looks at
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=6)


@dataclass(frozen=True)
class Attempt:
    """A job or a task that worked on the interval."""

    failed: bool
    at: datetime  # when it ended, or was created if it has not
    error: str = ""
    permanent: bool = False  # the next one would fail as well
    subject: str = "It"


def health_of_attempts(
    newest_first: Iterable[Attempt], now: datetime, longest: timedelta = LONGEST_PAUSE
) -> Health | None:
    """Why nothing is tried now; None when something may be. ``longest``: the pause at most, unless it is permanent."""
    failures: list[Attempt] = []
    for attempt in newest_first:
        if not attempt.failed:
            break
        failures.append(attempt)
    if not failures:
        return None
    newest = failures[0]
    pause = LONGEST_PAUSE if newest.permanent else min(longest, FIRST_PAUSE * 2 ** min(len(failures) - 1, 10))
    again = newest.at + pause
    if now >= again:
        return None
    cause = f"{newest.subject} failed. The next attempt is at {again:%H:%M:%S} UTC: {newest.error}"
    return Health.of(Code.FAILED, cause, "Fix the cause of the error, if the next attempt fails too.")
