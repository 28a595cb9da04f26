"""Druid's granularities: which interval a time falls into.

Names and meaning follow Druid's documentation of query granularities; weeks start on Monday; all in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from dateutil.relativedelta import relativedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
MIN_TIME = datetime(1, 1, 1, tzinfo=UTC)
MAX_TIME = datetime(9999, 12, 31, tzinfo=UTC)


class Granularity(StrEnum):
    """A bucket size."""

    NONE = "NONE"  # query granularity only: leaves a time as it is
    SECOND = "SECOND"
    MINUTE = "MINUTE"
    FIVE_MINUTE = "FIVE_MINUTE"
    TEN_MINUTE = "TEN_MINUTE"
    FIFTEEN_MINUTE = "FIFTEEN_MINUTE"
    THIRTY_MINUTE = "THIRTY_MINUTE"
    HOUR = "HOUR"
    SIX_HOUR = "SIX_HOUR"
    EIGHT_HOUR = "EIGHT_HOUR"
    DAY = "DAY"
    WEEK = "WEEK"
    MONTH = "MONTH"
    QUARTER = "QUARTER"
    YEAR = "YEAR"
    ALL = "ALL"  # one bucket for all time

    @property
    def fixed_seconds(self) -> int | None:
        """Length in seconds where every bucket is equally long, else None (months, quarters, years, ALL, NONE)."""
        return _FIXED.get(self)

    def bucket(self, time: datetime) -> tuple[datetime, datetime]:
        """The half-open interval of ``time`` (aware, UTC): (start, end)."""
        if self is Granularity.ALL:
            return MIN_TIME, MAX_TIME
        if self is Granularity.NONE:
            return time, time + timedelta(milliseconds=1)
        seconds = self.fixed_seconds
        if seconds is None:
            return self._calendar_bucket(time)
        width = timedelta(seconds=seconds)
        origin = _MONDAY if self is Granularity.WEEK else _EPOCH
        number = (time - origin) // width
        start = origin + number * width
        return start, start + width

    def _calendar_bucket(self, time: datetime) -> tuple[datetime, datetime]:
        months = _MONTHS[self]
        first = (time.month - 1) // months * months + 1
        start = datetime(time.year, first, 1, tzinfo=UTC)
        return start, start + relativedelta(months=months)


_FIXED = {
    Granularity.SECOND: 1,
    Granularity.MINUTE: 60,
    Granularity.FIVE_MINUTE: 300,
    Granularity.TEN_MINUTE: 600,
    Granularity.FIFTEEN_MINUTE: 900,
    Granularity.THIRTY_MINUTE: 1800,
    Granularity.HOUR: 3600,
    Granularity.SIX_HOUR: 21600,
    Granularity.EIGHT_HOUR: 28800,
    Granularity.DAY: 86400,
    Granularity.WEEK: 604800,
}
_MONTHS = {Granularity.MONTH: 1, Granularity.QUARTER: 3, Granularity.YEAR: 12}
