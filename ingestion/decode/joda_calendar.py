"""The calendar in which Joda puts a time together of what its parser read: ISO's, of any year.

Times are milliseconds since 1970, in no zone. What is read is kept as values of fields; the larger ones are set first,
each cuts what is below it, and then all are set once more, so that the smallest has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from ingestion.decode.druid_values import EvaluationFailed

_SECOND, _MINUTE, _HOUR, _HALF, DAY = 1000, 60_000, 3_600_000, 43_200_000, 86_400_000
_WEEK = 7 * DAY
_YEAR = 31_556_952_000  # on average, as is the month
_MONTH = _YEAR // 12
_LAST_YEAR = 292_278_993
_DEFAULT_YEAR = 2000
_THURSDAY = 3  # 1970-01-01, from Monday


class UndeterminedTime(EvaluationFailed):
    """Joda makes a time of these parts, and it is not known which."""


@dataclass(frozen=True)
class Field:
    """A part of a time."""

    within: float  # what it is counted in, in milliseconds: without end where nothing holds it
    size: float
    put: Callable[[int, int], int]  # raises ValueError of a value that it can't have
    floor: Callable[[int], int]


def days_of(year: int, month: int, day: int) -> int:
    """Since 1970."""
    shifted = year - (month <= 2)
    era, day_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + day_of_era * 365 + day_of_era // 4 - day_of_era // 100 + day_of_year - 719_468


def date_of(ms: int) -> tuple[int, int, int]:
    """Year, month and day."""
    era, day_of_era = divmod(ms // DAY + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _check_range(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise ValueError
    return value


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in(year: int, month: int) -> int:
    return 28 + _is_leap(year) if month == 2 else 30 + (month in (1, 3, 5, 7, 8, 10, 12))


def _day_of_year(ms: int) -> int:
    return ms // DAY - days_of(date_of(ms)[0], 1, 1) + 1


def _put_year(ms: int, year: int) -> int:
    """Days from March on keep their date, and February 29th becomes the 28th."""
    _check_range(year, -_LAST_YEAR, _LAST_YEAR + 1)  # Joda goes one too far
    old_year, day = date_of(ms)[0], _day_of_year(ms)
    if day > 59:
        day += _is_leap(year) - _is_leap(old_year)
    return (days_of(year, 1, 1) + day - 1) * DAY + ms % DAY


def _put_year_of_era(ms: int, year: int) -> int:
    _check_range(year, 1, _LAST_YEAR)
    return _put_year(ms, year if date_of(ms)[0] > 0 else 1 - year)


def _put_era(ms: int, era: int) -> int:
    if not era:
        raise UndeterminedTime
    year = date_of(ms)[0]
    return ms if year > 0 else _put_year(ms, -year)


def _put_century(ms: int, century: int) -> int:
    year = date_of(ms)[0]
    return _put_year_of_era(ms, century * 100 + (year if year > 0 else 1 - year) % 100)


def _floor_century(ms: int) -> int:
    year = date_of(ms)[0]
    return _floor_year(_put_year(ms, max(1, year // 100 * 100)))


def _floor_year(ms: int) -> int:
    return days_of(date_of(ms)[0], 1, 1) * DAY


def _put_month(ms: int, month: int) -> int:
    year, _, day = date_of(ms)
    _check_range(month, 1, 12)
    return days_of(year, month, min(day, _days_in(year, month))) * DAY + ms % DAY


def _floor_month(ms: int) -> int:
    year, month, _ = date_of(ms)
    return days_of(year, month, 1) * DAY


def _put_day(ms: int, day: int) -> int:
    year, month, old_day = date_of(ms)
    return ms + (_check_range(day, 1, _days_in(year, month)) - old_day) * DAY


def _put_day_of_year(ms: int, day: int) -> int:
    return ms + (_check_range(day, 1, 365 + _is_leap(date_of(ms)[0])) - _day_of_year(ms)) * DAY


def _weekday(ms: int) -> int:
    """From Monday, 0."""
    return (ms // DAY + _THURSDAY) % 7


def _week(ms: int) -> tuple[int, int]:
    """The year that has most of its days, and the week in it."""
    year = date_of(ms + (_THURSDAY - _weekday(ms)) * DAY)[0]
    return year, (_floor_week(ms) - _first_week(year)) // _WEEK + 1


def _floor_week(ms: int) -> int:
    return (ms // DAY - _weekday(ms)) * DAY


def _first_week(year: int) -> int:
    """Its Monday."""
    return _floor_week(days_of(year, 1, 4) * DAY)


def _weeks_in(year: int) -> int:
    return (_first_week(year + 1) - _first_week(year)) // _WEEK


def _put_week(ms: int, week: int) -> int:
    year, old_week = _week(ms)
    return ms + (_check_range(week, 1, _weeks_in(year)) - old_week) * _WEEK


def _put_weekyear(ms: int, year: int) -> int:
    """Week and weekday stay, but that a week 53 becomes the last one."""
    _check_range(abs(year), 0, _LAST_YEAR)
    old_year, week = _week(ms)
    week = min(week, _weeks_in(old_year), _weeks_in(year))
    return _first_week(year) + (week - 1) * _WEEK + ms - _floor_week(ms)


def _put_weekday(ms: int, day: int) -> int:
    return ms + (_check_range(day, 1, 7) - 1 - _weekday(ms)) * DAY


def _floor_day(ms: int) -> int:
    return ms - ms % DAY


def _clock(within: int, size: int) -> Field:
    """Equal parts, from 0."""

    def put(ms: int, value: int) -> int:
        return ms + (_check_range(value, 0, within // size - 1) - ms % within // size) * size

    return Field(within, size, put, lambda ms: ms - ms % size)


def _from_one(field: Field, most: int) -> Field:
    """Its last value is 0."""
    return Field(field.within, field.size, lambda ms, v: field.put(ms, _check_range(v, 1, most) % most), field.floor)


_HOURS, _HALF_HOURS = _clock(DAY, _HOUR), _clock(_HALF, _HOUR)
# By Joda's letter.
FIELDS = {
    "G": Field(inf, inf, _put_era, lambda ms: days_of(1, 1, 1) * DAY),
    "C": Field(inf, 100 * _YEAR, _put_century, _floor_century),
    "y": Field(inf, _YEAR, _put_year, _floor_year),
    "Y": Field(inf, _YEAR, _put_year_of_era, _floor_year),
    "x": Field(inf, _YEAR, _put_weekyear, lambda ms: _first_week(_week(ms)[0])),
    "M": Field(_YEAR, _MONTH, _put_month, _floor_month),
    "w": Field(_YEAR, _WEEK, _put_week, _floor_week),
    "D": Field(_YEAR, DAY, _put_day_of_year, _floor_day),
    "d": Field(_MONTH, DAY, _put_day, _floor_day),
    "e": Field(_WEEK, DAY, _put_weekday, _floor_day),
    "E": Field(_WEEK, DAY, _put_weekday, _floor_day),
    "a": _clock(DAY, _HALF),
    "H": _HOURS,
    "k": _from_one(_HOURS, 24),
    "K": _HALF_HOURS,
    "h": _from_one(_HALF_HOURS, 12),
    "m": _clock(_HOUR, _MINUTE),
    "s": _clock(_MINUTE, _SECOND),
    "S": _clock(_SECOND, 1),
}


def assemble_time(read: Iterable[tuple[Field, int]]) -> int:
    """The time of these fields. Without a year it is of 2000, without any part of a date of 1970.

    Raises ``ValueError`` where a field can't have its value.
    """
    fields = sorted(read, key=lambda pair: (-pair[0].within, -pair[0].size))
    if fields and DAY <= fields[0][0].size <= _MONTH:
        return assemble_time([*fields, (FIELDS["y"], _DEFAULT_YEAR)])
    ms = 0
    for field, value in fields:
        ms = field.floor(field.put(ms, value))
    for place, (field, value) in enumerate(fields):
        ms = field.put(ms, value)
        if place == len(fields) - 1:
            ms = field.floor(ms)
    return ms
