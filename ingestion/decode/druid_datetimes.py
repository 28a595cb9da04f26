"""Moments as Druid reads them: ISO 8601 as Joda has it, zones, granularities. Milliseconds since 1970."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from ingestion.decode.druid_values import EvaluationFailed
from ingestion.specs.errors import error_text
from ingestion.specs.schema.periods import PeriodGranularity, zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_ISO = re.compile(
    r"(?P<year>[+-]?\d{1,9})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?|-(?P<ordinal>\d{3})"
    r"|-[Ww](?P<week>\d{1,2})(?:-(?P<weekday>\d))?)?"
    r"(?:(?P<between>[Tt ])(?:(?P<hour>\d{1,2})(?:(?P<hours>[.,]\d{1,9})|:(?P<minute>\d{1,2})"
    r"(?:(?P<minutes>[.,]\d{1,9})|:(?P<second>\d{1,2})(?P<seconds>[.,]\d{1,9})?)?)?)?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]?\d{1,3})?)?)?)?)?",
    re.ASCII,
)
_ORDINAL = re.compile(r"[+-]?\d{1,9}-\d{3}(?!\d)", re.ASCII)


class BadTime(ValueError):
    """A period, pattern, unit or zone that is not taken; the message says what."""


@lru_cache(maxsize=64)
def parse_zone(name: str | None) -> tzinfo:
    """A zone by its name or offset. Raises ``BadTime``."""
    try:
        return zone_of(name)
    except (ValueError, OSError, LookupError):
        raise BadTime(f"{name!r} is neither a time zone's name nor an offset such as -08:00") from None


@lru_cache(maxsize=256)
def parse_granularity(period: str, origin_ms: int | None, zone_name: str | None) -> PeriodGranularity:
    """Raises ``BadTime``."""
    parse_zone(zone_name)
    written: dict[str, Any] = {"type": "period", "period": period, "timeZone": zone_name}
    if origin_ms is not None:
        written["origin"] = to_datetime(origin_ms)
    try:
        return PeriodGranularity.model_validate(written)
    except ValidationError as error:
        raise BadTime(error_text(error.errors()[0])) from None


def to_datetime(ms: int) -> datetime:
    """In UTC; of the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise EvaluationFailed from None


def to_ms(time: datetime) -> int:
    return (time - _EPOCH) // _MILLISECOND


def local_ms(local: datetime, where: tzinfo) -> int:
    """Of a time in a zone. A time that the zone skips fails, as in Joda; of two the first one counts."""
    time = local.replace(tzinfo=where, fold=0)
    try:
        ms = to_ms(time.astimezone(UTC))
        if where is not UTC and to_datetime(ms).astimezone(where).replace(tzinfo=None) != local:
            raise EvaluationFailed
    except OverflowError:
        raise EvaluationFailed from None
    return ms


def iso_ms(text: str, where: tzinfo = UTC, blank: bool = False) -> int | None:
    """ISO 8601 as Joda reads it; ``blank``: whether a blank may stand for the T. None where it can't be read."""
    match = _ISO.fullmatch(text)
    if match is None or (match["between"] == " " and not blank):
        return None
    parts = match.groupdict()
    if parts["hour"] is None and parts["zone"] is not None and parts["between"] is None:
        return None
    try:
        day = _parse_date(text, parts)
        local = day + _parse_clock(parts)
    except (ValueError, OverflowError):
        return None
    if parts["zone"] is not None:
        try:
            return to_ms((local - parse_offset(parts["zone"])).replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            return None
    try:
        return local_ms(local, where)
    except EvaluationFailed:
        return None


def _parse_date(text: str, parts: dict[str, str | None]) -> datetime:
    year = int(parts["year"] or 0)
    if not 1 <= year <= 9999:
        raise EvaluationFailed
    if parts["ordinal"] is not None or _ORDINAL.match(text):
        number = int(parts["ordinal"] or 0)
        if not 1 <= number <= (366 if monthrange(year, 2)[1] == 29 else 365):
            raise ValueError
        return datetime(year, 1, 1) + timedelta(days=number - 1)
    if parts["week"] is not None:
        week_day = datetime.fromisocalendar(year, int(parts["week"]), int(parts["weekday"] or 1))
        return datetime(week_day.year, week_day.month, week_day.day)
    return datetime(year, int(parts["month"] or 1), int(parts["day"] or 1))


def _parse_clock(parts: dict[str, str | None]) -> timedelta:
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if minute > 59 or second > 59 or hour > 23:
        raise ValueError
    fraction = timedelta(0)
    for name, unit in (("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        digits = parts[name]
        if digits is not None:
            fraction = timedelta(milliseconds=int(digits[1:]) * unit // 10 ** len(digits[1:]))
    return timedelta(hours=hour, minutes=minute, seconds=second) + fraction


def parse_offset(text: str) -> timedelta:
    """Of ``Z``, ``+02``, ``-08:00``: what is written at a time's end, and has been matched."""
    if text in "Zz":
        return timedelta(0)
    digits = re.sub(r"\D", "", text[1:])
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4] or 0), int(digits[4:6] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError
    delta = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -delta if text[0] == "-" else delta
