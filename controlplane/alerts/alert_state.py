"""From how an alert stood and what is seen now to how it stands: pure.

What is not known ends nothing, and calls nothing well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

State = Literal["ok", "pending", "firing", "unknown"]


@dataclass(frozen=True)
class AlertState:
    """How an alert stands."""

    state: State
    since: datetime
    bad_since: datetime | None = None
    good_since: datetime | None = None  # of one that fires


def next_state(
    previous: AlertState | None, condition_holds: bool | None, now: datetime, *, hold: timedelta, clear: timedelta
) -> AlertState:
    """``condition_holds``: None where it is not known. ``hold``: how long it must be bad before it fires; ``clear``:
    and how long well before it ends.
    """
    previous = previous or AlertState("unknown", now)
    if condition_holds is None:
        return (
            replace(previous, good_since=None)
            if previous.state == "firing"
            else _enter_state("unknown", previous, now, previous.bad_since)
        )
    if condition_holds:
        return _state_when_bad(previous, now, hold)
    return _state_when_good(previous, now, clear)


def _state_when_bad(previous: AlertState, now: datetime, hold: timedelta) -> AlertState:
    if previous.state == "firing":
        return replace(previous, good_since=None)
    since = previous.bad_since or now
    return AlertState("firing", since, since) if now - since >= hold else _enter_state("pending", previous, now, since)


def _state_when_good(previous: AlertState, now: datetime, clear: timedelta) -> AlertState:
    if previous.state != "firing":
        return _enter_state("ok", previous, now, None)
    since = previous.good_since or now
    return AlertState("ok", now) if now - since >= clear else replace(previous, good_since=since)


def _enter_state(state: State, previous: AlertState, now: datetime, bad_since: datetime | None) -> AlertState:
    return AlertState(state, previous.since if previous.state == state else now, bad_since)
