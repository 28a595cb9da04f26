"""Intervals in ISO 8601, as Druid's filters have them: two times, or a time and a period, with a slash between."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from dateutil.relativedelta import relativedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT = re.compile(r"(\d{4})(?:-(\d{2}))?", re.ASCII)
_PERIOD = re.compile(
    r"P(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?",
    re.ASCII,
)


def interval_ms(text: str, zone: tzinfo = UTC) -> tuple[int, int]:
    """Start and end in milliseconds since 1970, half-open. ``zone``: of times without one. Raises ``ValueError``."""
    first, slash, second = text.partition("/")
    refused = ValueError(f"{text!r} is not an interval such as 2025-06-01/2025-07-01 or 2025-06-01/P1M")
    try:
        if first.startswith("P"):
            end = _parse_time(second, zone)
            start = end - _parse_period(first)
        else:
            start = _parse_time(first, zone)
            end = start + _parse_period(second) if second.startswith("P") else _parse_time(second, zone)
    except (ValueError, OverflowError):
        raise refused from None
    if not slash or end < start:
        raise refused
    return _ms(start), _ms(end)


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _parse_time(text: str, zone: tzinfo) -> datetime:
    short = _SHORT.fullmatch(text)
    time = datetime(int(short[1]), int(short[2] or 1), 1) if short else datetime.fromisoformat(text)
    return time.replace(tzinfo=time.tzinfo or zone).astimezone(zone)


def _parse_period(text: str) -> relativedelta:
    match = _PERIOD.fullmatch(text)
    parts = [int(p or 0) for p in match.groups()] if match else []
    if not any(parts):
        raise ValueError(text)
    years, months, weeks, days, hours, minutes, seconds = parts
    return relativedelta(
        years=years, months=months, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds
    )
