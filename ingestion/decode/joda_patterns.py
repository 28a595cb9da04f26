"""Joda's patterns of times: what writes a time by one, and what reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from ingestion.decode.druid_moments import BadTime, local_ms, milliseconds, offset, zone
from ingestion.decode.druid_values import Fails

_PARTS = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)|(')")
_MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
_MONTHS += ["August", "September", "October", "November", "December"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


class NotMade(Fails):
    """Joda makes a time of these parts, and it is not known which."""


def _tokens(pattern: str) -> list[tuple[str, str]]:
    """(letters, "") or ("", text). Raises ``BadTime``."""
    found = []
    for quoted, run, _, other, quote in _PARTS.findall(pattern):
        if quote:
            raise BadTime(f"in the pattern {pattern!r} a quote (') is not closed")
        found.append((run, "") if run else ("", other or quoted.replace("''", "'") or "'"))
    if not any(run for run, _ in found):
        raise BadTime(f"the pattern {pattern!r} holds no part of a time")
    return found


def _shown_offset(time: datetime, colon: bool, utc_as_z: bool) -> str:
    seconds = int((time.utcoffset() or timedelta(0)).total_seconds())
    if utc_as_z and not seconds:
        return "Z"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}{':' * colon}{minutes:02}"


def _zone_id(time: datetime) -> str:
    """Its name; of an offset that has none the offset."""
    fixed = isinstance(time.tzinfo, timezone) and time.tzinfo is not UTC
    return _shown_offset(time, True, utc_as_z=False) if fixed else str(time.tzinfo)


_SHOWN: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda t, n: f"{t.year % 100:02}" if n == 2 else f"{t.year:0{n}}",
    "Y": lambda t, n: f"{t.year % 100:02}" if n == 2 else f"{t.year:0{n}}",
    "C": lambda t, n: f"{t.year // 100:0{n}}",
    "G": lambda t, n: "AD",
    "x": lambda t, n: f"{t.isocalendar().year % 100:02}" if n == 2 else f"{t.isocalendar().year:0{n}}",
    "w": lambda t, n: f"{t.isocalendar().week:0{n}}",
    "e": lambda t, n: f"{t.isoweekday():0{n}}",
    "E": lambda t, n: _DAYS[t.weekday()] if n >= 4 else _DAYS[t.weekday()][:3],
    "D": lambda t, n: f"{t.timetuple().tm_yday:0{n}}",
    "M": lambda t, n: f"{t.month:0{n}}" if n < 3 else _MONTHS[t.month - 1][: 3 if n == 3 else None],
    "d": lambda t, n: f"{t.day:0{n}}",
    "a": lambda t, n: "AM" if t.hour < 12 else "PM",
    "K": lambda t, n: f"{t.hour % 12:0{n}}",
    "h": lambda t, n: f"{t.hour % 12 or 12:0{n}}",
    "H": lambda t, n: f"{t.hour:0{n}}",
    "k": lambda t, n: f"{t.hour or 24:0{n}}",
    "m": lambda t, n: f"{t.minute:0{n}}",
    "s": lambda t, n: f"{t.second:0{n}}",
    "S": lambda t, n: f"{t.microsecond // 1000:03}"[:n].ljust(n, "0"),
    "Z": lambda t, n: _zone_id(t) if n > 2 else _shown_offset(t, n == 2, utc_as_z=False),
}


@lru_cache(maxsize=256)
def writer(pattern: str, utc_as_z: bool = False) -> Callable[[datetime], str]:
    """Writes times by Joda's pattern. Raises ``BadTime``."""
    tokens = _tokens(pattern)
    for run, _ in tokens:
        if run and (run[0] not in _SHOWN or len(run) > 20):
            raise BadTime(f"{run!r} in the pattern {pattern!r} is not taken")

    def written(time: datetime) -> str:
        return "".join(
            text
            if not run
            else _shown_offset(time, True, True)
            if utc_as_z and run == "ZZ"
            else _SHOWN[run[0]](time, len(run))
            for run, text in tokens
        )

    return written


_NUMBERS = {
    "y": 9,
    "Y": 9,
    "M": 2,
    "d": 2,
    "D": 3,
    "H": 2,
    "k": 2,
    "K": 2,
    "h": 2,
    "m": 2,
    "s": 2,
    "x": 9,
    "w": 2,
    "e": 1,
}
_ADJACENT = {*_NUMBERS, "S"}


def shape(pattern: str) -> str:
    """A regular expression of what the pattern reads, in any case, with a group for each run of letters.

    Raises ``BadTime``.
    """
    tokens = _tokens(pattern)
    after = [*(run for run, _ in tokens[1:]), ""]
    return "".join(
        f"({_read(run, next_run, pattern)})" if run else re.escape(text)
        for (run, text), next_run in zip(tokens, after, strict=True)
    )


@lru_cache(maxsize=256)
def reader(pattern: str, zone_name: str | None) -> Callable[[str], int | None]:
    """Reads times by Joda's pattern; null of what is none. Raises ``BadTime``."""
    where = zone(zone_name)
    names = [run for run, _ in _tokens(pattern) if run]
    compiled = re.compile(shape(pattern), re.ASCII | re.IGNORECASE)

    def read(text: str) -> int | None:
        found = compiled.fullmatch(text)
        if found is None:
            return None
        try:
            return _assembled(dict(zip(names, found.groups(), strict=True)), where)
        except NotMade:
            raise
        except (ValueError, OverflowError, Fails):
            return None

    return read


def _read(run: str, after: str, pattern: str) -> str:
    letter, count = run[0], len(run)
    if letter in "yYx" and count == 2:
        raise BadTime(f"{run!r} in the pattern {pattern!r} is not taken: which century it means hangs on the clock")
    if letter == "M" and count > 2:
        return "|".join(sorted({n for m in _MONTHS for n in (m, m[:3])}, key=len, reverse=True))
    if letter in _NUMBERS:
        if after and after[0] in _ADJACENT and not (after[0] == "M" and len(after) > 2):
            return rf"\d{{{count}}}"
        return rf"{'[+-]?' if letter in 'yYx' else ''}\d{{1,{_NUMBERS[letter]}}}"
    fixed = {"S": rf"\d{{1,{count}}}", "a": "AM|PM", "E": "|".join(n for d in _DAYS for n in (d, d[:3]))}
    if letter in fixed:
        return fixed[letter]
    if letter == "Z" and count < 3:
        return r"[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?|Z"
    raise BadTime(f"{run!r} in the pattern {pattern!r} is not taken")


def letters(pattern: str) -> set[str]:
    """Of which parts of a time it is made. Raises ``BadTime``."""
    return {run[0] for run, _ in _tokens(pattern) if run}


def _day(by: dict[str, str]) -> datetime:
    """Without a year that of 2000; without any part of a date the first day of 1970."""
    year = int(by.get("y", by.get("Y", "2000" if {"M", "d", "D", "w"} & set(by) else "1970")))
    if {"x", "w", "e"} & set(by):
        return _day_of_week(by, year)
    if "D" not in by:
        return datetime(year, _month(by.get("M", "1")), int(by.get("d", "1")))
    day = datetime(year, 1, 1) + timedelta(days=int(by["D"]) - 1)
    if day.year != year:
        raise ValueError
    return day


def _day_of_week(by: dict[str, str], year: int) -> datetime:
    """What Joda makes of weeks beside parts of another calendar, or of a weekday alone, is not made here."""
    week = int(by.get("w", "1"))
    of_year = "x" not in by
    if {"M", "d", "D"} & set(by) or (of_year and ("w" not in by or not 1 < week < 52)) or not (of_year or year == 1970):
        raise NotMade
    found = datetime.fromisocalendar(year if of_year else int(by["x"]), week, int(by.get("e", "1")))
    return datetime(found.year, found.month, found.day)


def _assembled(parts: dict[str, str], where: tzinfo) -> int:
    """Of what the pattern's letters were read as."""
    by = {run[0]: text for run, text in parts.items()}
    day = _day(by)
    if "E" in by and not {"d", "D"} & set(by):
        raise NotMade
    if "E" in by:  # it counts last: another day is that one of the same week
        names = [name[:3].lower() for name in _DAYS]
        day += timedelta(days=names.index(by["E"][:3].lower()) - day.weekday())
    local = day + timedelta(
        hours=_hour(by),
        minutes=_within(by.get("m", "0"), 59),
        seconds=_within(by.get("s", "0"), 59),
        milliseconds=int(by.get("S", "0").ljust(3, "0")[:3]),
    )
    if "Z" in by:
        return milliseconds((local - offset(by["Z"])).replace(tzinfo=UTC))
    return local_ms(local, where)


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(i for i, name in enumerate(_MONTHS, 1) if name[:3].lower() == text[:3].lower())


def _hour(by: dict[str, str]) -> int:
    if "H" in by:
        return _within(by["H"], 23)
    if "k" in by:
        return _within(by["k"], 24, 1) % 24
    if "h" in by or "K" in by:
        half = _within(by["h"], 12, 1) % 12 if "h" in by else _within(by["K"], 11)
        return half + 12 * (by.get("a", "am").lower() == "pm")
    return 0


def _within(text: str, most: int, least: int = 0) -> int:
    found = int(text)
    if not least <= found <= most:
        raise ValueError
    return found
