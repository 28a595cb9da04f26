"""Whether a reader is behind its topic, and where its lag goes."""

from __future__ import annotations

from enum import StrEnum

from controlplane.segments.selectors import LagTrend

KEEPS_UP_S = 10  # what has come in within so many seconds is no lag yet
CHANGED_BY = 0.05  # a lag that differs by less than this share neither grows nor shrinks


class Trend(StrEnum):
    """Where a lag goes."""

    GROWING = "growing"
    STEADY = "steady"
    SHRINKING = "shrinking"


def trend_of(lag: LagTrend) -> Trend:
    """Against some minutes before."""
    if lag.before is None:
        return Trend.STEADY
    apart = max(lag.before * CHANGED_BY, 1)
    grown = lag.lag - lag.before
    return Trend.GROWING if grown > apart else Trend.SHRINKING if -grown > apart else Trend.STEADY


def is_behind(lag: LagTrend) -> bool:
    """Whether more waits unread than comes in within some seconds, and has for a minute."""
    return lag.unread > keeps_up_with(lag)


def keeps_up_with(lag: LagTrend) -> float:
    """How many offsets may wait unread without being a lag."""
    return KEEPS_UP_S * (lag.records_per_s or 0)
