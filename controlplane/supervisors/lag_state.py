"""Whether a reader is behind its topic, and where its lag goes."""

from __future__ import annotations

from datetime import timedelta

from controlplane.common.health import Trend
from controlplane.lag.trend import MINUTE, LagTrend

LAG_GRACE_S = 10  # what has come in within so many seconds is no lag yet
STEADY_WITHIN = 0.05  # a lag that differs by less than this share neither grows nor shrinks


def trend_of(lag: LagTrend) -> Trend:
    """Against some minutes before, unless the last minute shows that it shrinks now."""
    if is_catching_up(lag):
        return Trend.SHRINKING
    if lag.before is None:
        return Trend.STEADY
    tolerance = max(lag.before * STEADY_WITHIN, 1)
    growth = lag.ahead - lag.before
    return Trend.GROWING if growth > tolerance else Trend.SHRINKING if -growth > tolerance else Trend.STEADY


def is_catching_up(lag: LagTrend) -> bool:
    """Whether less waits unread than a minute ago. A publish takes nothing from what is unread."""
    read = lag.read_in_minute or 0
    return read > max((lag.unread + read) * STEADY_WITHIN, 1)


def time_left(lag: LagTrend) -> timedelta | None:
    """Of a lag that shrinks; see ``seconds_left``."""
    seconds = seconds_left(lag)
    return None if seconds is None else timedelta(seconds=seconds)


def seconds_left(lag: LagTrend) -> float | None:
    """Until it has caught up, at the rate of the last minute if that is much, else of the last minutes.

    None: it does not shrink, by however little, or nothing was read in that time, so that no rate says when.
    """
    if not has_read(lag):
        return None
    shrunk, read = (lag.before or 0) - lag.ahead, lag.read_in_minute or 0
    if shrunk > 0 and not is_catching_up(lag):
        return lag.elapsed.total_seconds() * (lag.ahead / shrunk)
    return MINUTE.total_seconds() * (lag.unread / read) if read > 0 else None


def is_behind(lag: LagTrend) -> bool:
    """Whether more waits unread than comes in within some seconds, and has for a minute."""
    return lag.unread > lag_allowance(lag)


def lag_allowance(lag: LagTrend) -> float:
    """How many offsets may wait unread without being a lag."""
    return LAG_GRACE_S * reading_rate(lag)


def has_read(lag: LagTrend) -> bool:
    """Whether the reader took or ended any record in the time that its rates have."""
    return bool(reading_rate(lag) or lag.ended_per_s)


def reading_rate(lag: LagTrend) -> float:
    """Records per second that the reader stored or, before its first publish, took."""
    return max(lag.records_per_s or 0, lag.taken_per_s or 0)
