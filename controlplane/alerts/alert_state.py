"""From how an alert stood and what is seen now to how it stands: pure.

What is not known ends nothing, and calls nothing well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

State = Literal["ok", "pending", "firing", "unknown"]


@dataclass(frozen=True)
class Evaluation:
    """What a kind says of a subject now."""

    bad: bool | None  # None: it is not known
    text: str  # a sentence, with the cause
    value: float | None = None


@dataclass(frozen=True)
class AlertState:
    """How an alert stands."""

    state: State
    since: datetime
    bad_since: datetime | None = None
    good_since: datetime | None = None  # of one that fires


def next_state(
    was: AlertState | None, verdict: Evaluation, now: datetime, *, hold: timedelta, clear: timedelta
) -> AlertState:
    """``hold``: how long it must be bad before it fires; ``clear``: and how long well before it ends."""
    was = was or AlertState("unknown", now)
    if verdict.bad is None:
        return replace(was, good_since=None) if was.state == "firing" else _in("unknown", was, now, was.bad_since)
    if verdict.bad:
        return _bad(was, now, hold)
    return _good(was, now, clear)


def _bad(was: AlertState, now: datetime, hold: timedelta) -> AlertState:
    if was.state == "firing":
        return replace(was, good_since=None)
    since = was.bad_since or now
    return AlertState("firing", since, since) if now - since >= hold else _in("pending", was, now, since)


def _good(was: AlertState, now: datetime, clear: timedelta) -> AlertState:
    if was.state != "firing":
        return _in("ok", was, now, None)
    since = was.good_since or now
    return AlertState("ok", now) if now - since >= clear else replace(was, good_since=since)


def _in(state: State, was: AlertState, now: datetime, bad_since: datetime | None) -> AlertState:
    return AlertState(state, was.since if was.state == state else now, bad_since)
