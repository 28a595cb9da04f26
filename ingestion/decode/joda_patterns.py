"""Joda's patterns of times: what writes a time by one, and which texts hold one that strptime reads as Joda does."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from ingestion.decode.druid_datetimes import BadTime
from ingestion.decode.druid_values import EvaluationFailed
from ingestion.specs.schema.joda import split_pattern

MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
MONTHS += ["August", "September", "October", "November", "December"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


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


def _zone_name(time: datetime, long: bool) -> str:
    """Java's names of other zones are not known here."""
    if time.tzinfo is not UTC:
        raise EvaluationFailed
    return "Coordinated Universal Time" if long else "UTC"


_SHOWN: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda t, n: f"{t.year % 100:02}" if n == 2 else f"{t.year:0{n}}",
    "Y": lambda t, n: f"{t.year % 100:02}" if n == 2 else f"{t.year:0{n}}",
    "C": lambda t, n: f"{t.year // 100:0{n}}",
    "G": lambda t, n: "AD",
    "x": lambda t, n: f"{t.isocalendar().year % 100:02}" if n == 2 else f"{t.isocalendar().year:0{n}}",
    "w": lambda t, n: f"{t.isocalendar().week:0{n}}",
    "e": lambda t, n: f"{t.isoweekday():0{n}}",
    "E": lambda t, n: DAYS[t.weekday()] if n >= 4 else DAYS[t.weekday()][:3],
    "D": lambda t, n: f"{t.timetuple().tm_yday:0{n}}",
    "M": lambda t, n: f"{t.month:0{n}}" if n < 3 else MONTHS[t.month - 1][: 3 if n == 3 else None],
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
    "z": lambda t, n: _zone_name(t, n > 3),
}


@lru_cache(maxsize=256)
def writer(pattern: str, utc_as_z: bool = False) -> Callable[[datetime], str]:
    """Writes times by Joda's pattern. Raises ``BadTime``."""
    tokens = split_pattern(pattern)
    if not any(run or text for run, text in tokens):
        raise BadTime("the pattern is empty")
    for run, _ in tokens:
        if run and (run[0] not in _SHOWN or len(run) > 20):
            raise BadTime(f"{run!r} in the pattern {pattern!r} is not supported")

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


OFFSET = r"(?:[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?|Z|z)"
_NUMBERS = {"y": 9, "Y": 9, "M": 2, "d": 2, "H": 2, "h": 2, "m": 2, "s": 2, "S": 9}


def shape(pattern: str) -> str | None:
    """A regular expression of texts that the pattern reads, as strptime does; None where there is none."""
    pairs = split_pattern(pattern)
    after = [*(run for run, _ in pairs[1:]), ""]
    shapes = [
        _part_shape(run, then) if run else f"(?i:{re.escape(text)})"
        for (run, text), then in zip(pairs, after, strict=True)
    ]
    return "".join(s for s in shapes if s is not None) if all(s is not None for s in shapes) else None


def _part_shape(run: str, then: str) -> str | None:
    letter, count = run[0], len(run)
    if letter == "M" and count > 2:
        return _alternatives(sorted({n for m in MONTHS for n in (m, m[:3])}, key=len, reverse=True))
    if letter == "S":
        # strptime takes all digits that follow.
        return None if then[:1] in _NUMBERS and not then.startswith("MMM") else rf"\d{{1,{count}}}"
    if letter in _NUMBERS:
        if then[:1] not in _NUMBERS or then.startswith("MMM"):
            return rf"{'[+-]?' if letter == 'y' else ''}\d{{1,{max(count, _NUMBERS[letter])}}}"
        # Joda takes as many digits as there are, up to the most.
        return rf"\d{{{count}}}" if letter in "yY" or count >= _NUMBERS[letter] else None
    if letter == "a":
        return _alternatives(["AM", "PM"])
    return OFFSET if letter == "Z" and count < 3 and not then else None


def _alternatives(names: list[str]) -> str:
    return f"(?:{'|'.join(form for n in names for form in (n, n.lower(), n.upper()))})"
