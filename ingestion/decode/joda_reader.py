"""Joda's patterns of times: what reads a time by one, from left to right, as Joda does: nothing is tried twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import available_timezones

from ingestion.decode.druid_datetimes import BadTime, local_ms, parse_zone
from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.joda_calendar import FIELDS, Field, UndeterminedTime, assemble_time
from ingestion.decode.joda_patterns import DAYS, MONTHS
from ingestion.specs.schema.joda import check_read, split_pattern

# How many digits at most; more if the run has more letters.
_DIGITS = {"M": 2, "d": 2, "D": 3, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2, "w": 2, "e": 1}
_YEARS = "xyY"
_LONG_YEAR = 9  # digits
_NUMBERS = {*_DIGITS, *_YEARS, "C", "S"}
_SIGN = re.compile(r"[+-](?=[0-9])")
_RUN = re.compile(r"[0-9]*")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3])", re.ASCII)
_WITH_COLONS = re.compile(r":([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,3}))?)?")
_WITHOUT_COLONS = re.compile(r"([0-5][0-9])(?:([0-5][0-9])([0-9]{1,3})?)?")
_LONGEST_CONTINENT = 11  # Antarctica/
_US = {"E": "America/New_York", "C": "America/Chicago", "M": "America/Denver", "P": "America/Los_Angeles"}
_SHORT_ZONES = {f"{letter}{part}T": name for letter, name in _US.items() for part in "SD"}
_SHORT_ZONES |= {"UT": "UTC", "UTC": "UTC", "GMT": "UTC"}
_YEARS_AHEAD = 20  # a year of two digits is one of the 100 that end before as many years from now
_EPOCH = datetime(1970, 1, 1)


@dataclass
class _ReadParts:
    """What was read of a text."""

    fields: list[tuple[Field, int]] = field(default_factory=list)
    offset_ms: int | None = None
    zone: tzinfo | None = None


# Reads at a place of a text, and gives the place behind. Raises ``ValueError``.
Step = Callable[[str, int, _ReadParts], int]


@lru_cache(maxsize=256)
def reader(pattern: str, zone_name: str | None) -> Callable[[str], int | None]:
    """Reads times by Joda's pattern; null of what is none. Raises ``BadTime``."""
    where, steps = parse_zone(zone_name), _steps(pattern)

    def read(text: str) -> int | None:
        time_parts = _ReadParts(zone=where)
        try:
            position = 0
            for step in steps:
                position = step(text, position, time_parts)
            return _milliseconds(time_parts) if position == len(text) else None
        except UndeterminedTime:
            raise
        except (ValueError, OverflowError, EvaluationFailed):
            return None

    return read


def _steps(pattern: str) -> list[Step]:
    try:
        check_read(pattern)
    except ValueError as error:
        raise BadTime(f"the pattern {pattern!r} is not supported: {error}") from None
    pairs = split_pattern(pattern)
    after = [*(run for run, _ in pairs[1:]), ""]
    return [_step(run, then) if run else _literal_step(text) for (run, text), then in zip(pairs, after, strict=True)]


def _milliseconds(time_parts: _ReadParts) -> int:
    ms = assemble_time(time_parts.fields)
    if time_parts.offset_ms is not None:
        return ms - time_parts.offset_ms
    if time_parts.zone is UTC or time_parts.zone is None:
        return ms
    try:
        local = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise UndeterminedTime from None
    return local_ms(local, time_parts.zone)


def _step(run: str, then: str) -> Step:
    letter, count = run[0], len(run)
    if letter in "GEa" or (letter == "M" and count > 2):
        return _name_step(letter)
    if letter == "z":
        return _short_zone
    if letter == "Z":
        return _offset if count < 3 else _zone_id
    if letter == "S":
        return _fraction_step(count)
    numeric = then[:1] in _NUMBERS and not then.startswith("MMM")
    if letter in _YEARS and count == 2:
        return _year_step(letter, lenient=not numeric)
    if letter in _YEARS:
        return _number_step(letter, count if numeric else max(count, _LONG_YEAR), signed=letter != "Y")
    return _number_step(letter, max(count, _DIGITS.get(letter, 0)), signed=letter == "C")


def _literal_step(literal: str) -> Step:
    """In any case."""

    def step(text: str, position: int, time_parts: _ReadParts) -> int:
        end = position + len(literal)
        if text[position:end].lower() != literal.lower():
            raise ValueError
        return end

    return step


def _number_step(letter: str, most: int, signed: bool) -> Step:
    target_field = FIELDS[letter]

    def step(text: str, position: int, time_parts: _ReadParts) -> int:
        sign = _SIGN.match(text, position) if signed else None
        start = sign.end() if sign else position
        digits = _digits(text, start, most)
        time_parts.fields.append((target_field, -int(digits) if sign and sign[0] == "-" else int(digits)))
        return start + len(digits)

    return step


def _digits(text: str, position: int, most: int) -> str:
    """At least one."""
    run = _RUN.match(text, position, position + most)
    if run is None or not run[0]:
        raise ValueError
    return run[0]


def _year_step(letter: str, lenient: bool) -> Step:
    """Of two digits, without a sign, the century hangs on the clock, as in Joda; else the year is what is written."""
    year_field = FIELDS["y" if letter == "Y" else letter]
    last = datetime.now(UTC).year + _YEARS_AHEAD - 1
    written = _number_step(letter, len("2147483647"), signed=True)

    def step(text: str, position: int, time_parts: _ReadParts) -> int:
        digits = _digits(text, position, 3 if lenient else 2) if not _SIGN.match(text, position) or not lenient else ""
        if len(digits) != 2:
            if not lenient:
                raise ValueError
            return written(text, position, time_parts)
        time_parts.fields.append((year_field, last - (last - int(digits)) % 100))
        return position + 2

    return step


def _fraction_step(most: int) -> Step:
    def step(text: str, position: int, time_parts: _ReadParts) -> int:
        digits = _digits(text, position, most)
        time_parts.fields.append((FIELDS["S"], int(digits.ljust(3, "0")[:3])))
        return position + len(digits)

    return step


def _name_forms(names: Iterable[str], first: int) -> dict[str, int]:
    """Names as they are written, in lower and in upper case; short and long."""
    forms: dict[str, int] = {}
    for value, name in enumerate(names, first):
        for short in (name, name[:3]):
            forms |= dict.fromkeys((short, short.lower(), short.upper()), value)
    return forms


_NAMES = {
    "M": _name_forms(MONTHS, 1),
    "E": _name_forms(DAYS, 1),
    "a": _name_forms(("AM", "PM"), 0),
    "G": _name_forms(("BC", "AD"), 0) | {"BCE": 0, "bce": 0, "CE": 1, "ce": 1},
}


def _name_step(letter: str) -> Step:
    names = _NAMES[letter]
    longest = max(map(len, names))

    def step(text: str, position: int, time_parts: _ReadParts) -> int:
        end = _longest_name_end(text, position, longest, names)
        time_parts.fields.append((FIELDS[letter], names[text[position:end]]))
        return end

    return step


def _longest_name_end(text: str, position: int, most: int, names: Iterable[str]) -> int:
    """The end of the longest name that the text has at this place."""
    for end in range(min(len(text), position + most), position, -1):
        if text[position:end] in names:
            return end
    raise ValueError


def _short_zone(text: str, position: int, time_parts: _ReadParts) -> int:
    end = _longest_name_end(text, position, 3, _SHORT_ZONES)
    time_parts.zone = parse_zone(_SHORT_ZONES[text[position:end]])
    return end


def _zone_id(text: str, position: int, time_parts: _ReadParts) -> int:
    slash = text.find("/", position, position + _LONGEST_CONTINENT)
    group = text[position : slash + 1] if slash >= 0 else ""
    names = _zones().get(group, frozenset())
    end = _longest_name_end(text, position, max(map(len, names), default=0), names)
    time_parts.zone = parse_zone(text[position:end])
    return end


@cache
def _zones() -> dict[str, frozenset[str]]:
    """By their continent, with its slash."""
    names = available_timezones() - {"Factory", "localtime"}
    groups = {name[: name.find("/") + 1] for name in names}
    return {g: frozenset(n for n in names if n[: n.find("/") + 1] == g) for g in groups}


def _offset(text: str, position: int, time_parts: _ReadParts) -> int:
    """Z, or a sign with hours; then all with colons between, or none."""
    if text[position : position + 1] in ("Z", "z"):
        time_parts.offset_ms = 0
        return position + 1
    hours = _OFFSET.match(text, position)
    if hours is None:
        raise ValueError
    rest = (_WITH_COLONS if text.startswith(":", hours.end()) else _WITHOUT_COLONS).match(text, hours.end())
    end = hours.end() if rest is None else rest.end()
    _check_end(text, end, rest)
    minutes, seconds, part = rest.groups() if rest else (None, None, None)
    ms = ((int(hours[2]) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)) * 1000
    ms += int((part or "0").ljust(3, "0"))
    time_parts.offset_ms = -ms if hours[1] == "-" else ms
    return end


def _check_end(text: str, end: int, rest: re.Match[str] | None) -> None:
    """Raises ``ValueError`` where a part begins that is not whole."""
    after = text[end : end + 1]
    if rest is None or not rest[0].startswith(":"):
        bad = (after.isdigit() and (rest is None or rest[3] is None)) or (rest is None and after == ":")
    else:
        bad = after == ":" if rest[2] is None else (after in (".", ",") and bool(after) and rest[3] is None)
    if bad:
        raise ValueError
