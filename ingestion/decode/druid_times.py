"""Druid's functions of times. Times are milliseconds since 1970."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

from ingestion.decode.druid_datetimes import (
    BadTime,
    iso_ms,
    local_ms,
    parse_granularity,
    parse_zone,
    to_datetime,
    to_ms,
)
from ingestion.decode.druid_values import Array, EvaluationFailed, Nested, Value, as_long, as_text, to_long
from ingestion.decode.joda_patterns import writer
from ingestion.decode.joda_reader import reader

_PERIOD = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


def timestamp(value: Value, written: Value = None) -> Value:
    """Fails on what is no time."""
    if not isinstance(value, str):
        raise EvaluationFailed
    ms = iso_ms(value) if written is None else reader(str(written), None)(value)
    if ms is None:
        raise EvaluationFailed
    return ms


def unix_timestamp(value: Value, written: Value = None) -> Value:
    ms = timestamp(value, written)
    return _seconds(ms) if isinstance(ms, int) else None


def _seconds(ms: int) -> int:
    """Cut towards 0."""
    return ms // 1000 if ms >= 0 else -(-ms // 1000)


def _to_time_ms(value: Value) -> int | None:
    """Of a text the number it holds."""
    return as_long(value)


def _origin(value: Value, zone_name: Value) -> int | None:
    if value is None or isinstance(value, int):
        return value
    ms = iso_ms(str(as_text(value)), parse_zone(_text_or_none(zone_name)))
    if ms is None:
        raise EvaluationFailed
    return ms


def _text_or_none(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _bucket(value: Value, period: Value, origin: Value, zone_name: Value) -> tuple[int, int, int] | None:
    ms = _to_time_ms(value)
    if ms is None:
        return None
    try:
        buckets = parse_granularity(str(period), _origin(origin, zone_name), _text_or_none(zone_name))
    except BadTime:
        raise EvaluationFailed from None
    start, end = buckets.bucket(to_datetime(ms))
    return ms, to_ms(start), to_ms(end)


def timestamp_floor(value: Value, period: Value, origin: Value = None, zone_name: Value = None) -> Value:
    bucket = _bucket(value, period, origin, zone_name)
    return None if bucket is None else bucket[1]


def timestamp_ceil(value: Value, period: Value, origin: Value = None, zone_name: Value = None) -> Value:
    bucket = _bucket(value, period, origin, zone_name)
    return None if bucket is None else bucket[0] if bucket[0] == bucket[1] else bucket[2]


@lru_cache(maxsize=64)
def period_parts(text: str) -> tuple[int, timedelta]:
    """Months, and the rest. Raises ``BadTime``."""
    match = _PERIOD.fullmatch(text)
    parts = [int(p or 0) for p in match.groups()] if match else []
    if not any(parts) or max(parts) > 10_000_000:
        raise BadTime(f"{text!r} is not a period such as P1D or PT15M")
    years, months, weeks, days, hours, minutes, seconds = parts
    return years * 12 + months, timedelta(days=weeks * 7 + days, hours=hours, minutes=minutes, seconds=seconds)


def timestamp_shift(value: Value, period: Value, step: Value, zone_name: Value = None) -> Value:
    """Months and days are the zone's; each part is added by itself."""
    ms, times = _to_time_ms(value), _step_count(step)
    if ms is None:
        return None
    months, rest = period_parts(str(period))
    where = parse_zone(_text_or_none(zone_name))
    days, clock = timedelta(days=rest.days), rest - timedelta(days=rest.days)
    if abs(times) > 10_000_000:
        raise EvaluationFailed
    try:
        local = to_datetime(ms).astimezone(where).replace(tzinfo=None)
        if months or days:
            local = _months_later(local, months * times) + days * times
            ms = local_ms(local, where)
        return to_ms(to_datetime(ms) + clock * times)
    except (OverflowError, ValueError):
        raise EvaluationFailed from None


def _step_count(value: Value) -> int:
    """What holds no number is 0."""
    return 0 if isinstance(value, Array | Nested) else as_long(value) or 0


def _months_later(local: datetime, months: int) -> datetime:
    year, month = divmod(local.year * 12 + local.month - 1 + months, 12)
    return local.replace(year=year, month=month + 1, day=min(local.day, monthrange(year, month + 1)[1]))


_UNITS: dict[str, Callable[[datetime], int | float]] = {
    "MILLISECOND": lambda t: t.microsecond // 1000,
    "SECOND": lambda t: t.second,
    "MINUTE": lambda t: t.minute,
    "HOUR": lambda t: t.hour,
    "DAY": lambda t: t.day,
    "DOW": lambda t: t.isoweekday(),
    "ISODOW": lambda t: t.isoweekday(),
    "DOY": lambda t: t.timetuple().tm_yday,
    "WEEK": lambda t: t.isocalendar().week,
    "MONTH": lambda t: t.month,
    "QUARTER": lambda t: (t.month - 1) // 3 + 1,
    "YEAR": lambda t: t.year,
    "ISOYEAR": lambda t: t.year,  # so it is in Druid
    "DECADE": lambda t: t.year // 10,
    "CENTURY": lambda t: float(-(-t.year // 100)),
    "MILLENNIUM": lambda t: float(-(-t.year // 1000)),
}
UNITS = ("EPOCH", *_UNITS)


def timestamp_extract(value: Value, unit: Value, zone_name: Value = None) -> Value:
    """A text may be a time in ISO 8601 too."""
    if value is None:
        return None
    if isinstance(value, float):
        raise EvaluationFailed
    ms = value if isinstance(value, int) else None
    if isinstance(value, str):
        ms = iso_ms(value, parse_zone(_text_or_none(zone_name)))
    if ms is None:
        raise EvaluationFailed
    name = str(unit).upper()
    return (
        _seconds(ms)
        if name == "EPOCH"
        else _UNITS[name](to_datetime(ms).astimezone(parse_zone(_text_or_none(zone_name))))
    )


def timestamp_parse(value: Value, written: Value = None, zone_name: Value = None) -> Value:
    """Null of what is no time."""
    text = as_text(value)
    if text is None:
        return None
    if isinstance(written, str):
        return reader(written, _text_or_none(zone_name))(text)
    return iso_ms(text, parse_zone(_text_or_none(zone_name)), blank=True)


def timestamp_format(value: Value, written: Value = None, zone_name: Value = None) -> Value:
    ms = to_long(value) if isinstance(value, float) else _to_time_ms(value)
    if ms is None:
        return None
    where = parse_zone(_text_or_none(zone_name))
    try:
        time = to_datetime(ms).astimezone(where)
    except OverflowError:
        raise EvaluationFailed from None
    return writer(str(written) if isinstance(written, str) else "yyyy-MM-dd'T'HH:mm:ss.SSSZZ", not written)(time)


def subtract_months(left_value: Value, right_value: Value, zone_name: Value) -> Value:
    """How many whole months lie between."""
    left, right = as_long(left_value), as_long(right_value)
    if left is None or right is None:
        return None
    where = parse_zone(_text_or_none(zone_name))
    end, start = (to_datetime(ms).astimezone(where).replace(tzinfo=None) for ms in (left, right))
    months = (end.year - start.year) * 12 + end.month - start.month
    while months > 0 and _months_later(start, months) > end:
        months -= 1
    while months < 0 and _months_later(start, months) < end:
        months += 1
    return months
