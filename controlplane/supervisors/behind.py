"""Whether a reader is behind its topic, and where its lag goes."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from controlplane.lag.trend import MINUTE, LagTrend

KEEPS_UP_S = 10  # what has come in within so many seconds is no lag yet
CHANGED_BY = 0.05  # a lag that differs by less than this share neither grows nor shrinks


class Trend(StrEnum):
    """Where a lag goes."""

    GROWING = "growing"
    STEADY = "steady"
    SHRINKING = "shrinking"


def trend_of(lag: LagTrend) -> Trend:
    """Against some minutes before, unless the last minute shows that it shrinks now."""
    if reads_off(lag):
        return Trend.SHRINKING
    if lag.before is None:
        return Trend.STEADY
    apart = max(lag.before * CHANGED_BY, 1)
    grown = lag.lag - lag.before
    return Trend.GROWING if grown > apart else Trend.SHRINKING if -grown > apart else Trend.STEADY


def reads_off(lag: LagTrend) -> bool:
    """Whether less waits unread than a minute ago. A publish takes nothing from what is unread."""
    read = lag.read_in_minute or 0
    return read > max((lag.unread + read) * CHANGED_BY, 1)


def time_left(lag: LagTrend) -> timedelta:
    """Of a lag that shrinks, at the rate of the last minute, or else of the last minutes."""
    if reads_off(lag):
        return MINUTE * (lag.unread / (lag.read_in_minute or 1))
    return lag.over * (lag.lag / ((lag.before or 0) - lag.lag))


def is_behind(lag: LagTrend) -> bool:
    """Whether more waits unread than comes in within some seconds, and has for a minute."""
    return lag.unread > keeps_up_with(lag)


def keeps_up_with(lag: LagTrend) -> float:
    """How many offsets may wait unread without being a lag."""
    return KEEPS_UP_S * (lag.records_per_s or 0)
