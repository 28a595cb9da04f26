"""Joda's patterns of times: what reads a time by one, from left to right, as Joda does: nothing is tried twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import available_timezones

from ingestion.decode.druid_moments import BadTime, local_ms, zone
from ingestion.decode.druid_values import Fails
from ingestion.decode.joda_calendar import FIELDS, Field, NotMade, assembled
from ingestion.decode.joda_patterns import DAYS, MONTHS
from ingestion.specs.schema.joda import check_read, parts

# How many digits at most; more if the run has more letters.
_DIGITS = {"M": 2, "d": 2, "D": 3, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2, "w": 2, "e": 1}
_YEARS = "xyY"
_LONG_YEAR = 9  # digits
_NUMBERS = {*_DIGITS, *_YEARS, "C", "S"}
_SIGN = re.compile(r"[+-](?=[0-9])")
_RUN = re.compile(r"[0-9]*")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3])", re.ASCII)
_WITH_COLONS = re.compile(r":([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,3}))?)?")
_WITHOUT = re.compile(r"([0-5][0-9])(?:([0-5][0-9])([0-9]{1,3})?)?")
_LONGEST_CONTINENT = 11  # Antarctica/
_US = {"E": "America/New_York", "C": "America/Chicago", "M": "America/Denver", "P": "America/Los_Angeles"}
_SHORT_ZONES = {f"{letter}{part}T": name for letter, name in _US.items() for part in "SD"}
_SHORT_ZONES |= {"UT": "UTC", "UTC": "UTC", "GMT": "UTC"}
_YEARS_AHEAD = 20  # a year of two digits is one of the 100 that end before as many years from now
_EPOCH = datetime(1970, 1, 1)


@dataclass
class _Read:
    """What was read of a text."""

    fields: list[tuple[Field, int]] = field(default_factory=list)
    offset_ms: int | None = None
    zone: tzinfo | None = None


# Reads at a place of a text, and gives the place behind. Raises ``ValueError``.
Step = Callable[[str, int, _Read], int]


@lru_cache(maxsize=256)
def reader(pattern: str, zone_name: str | None) -> Callable[[str], int | None]:
    """Reads times by Joda's pattern; null of what is none. Raises ``BadTime``."""
    where, steps = zone(zone_name), _steps(pattern)

    def read(text: str) -> int | None:
        found = _Read(zone=where)
        try:
            place = 0
            for step in steps:
                place = step(text, place, found)
            return _milliseconds(found) if place == len(text) else None
        except NotMade:
            raise
        except (ValueError, OverflowError, Fails):
            return None

    return read


def _steps(pattern: str) -> list[Step]:
    try:
        check_read(pattern)
    except ValueError as error:
        raise BadTime(f"the pattern {pattern!r} is not taken: {error}") from None
    every = parts(pattern)
    after = [*(run for run, _ in every[1:]), ""]
    return [_step(run, then) if run else _literal(text) for (run, text), then in zip(every, after, strict=True)]


def _milliseconds(found: _Read) -> int:
    ms = assembled(found.fields)
    if found.offset_ms is not None:
        return ms - found.offset_ms
    if found.zone is UTC or found.zone is None:
        return ms
    try:
        local = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise NotMade from None
    return local_ms(local, found.zone)


def _step(run: str, then: str) -> Step:
    letter, count = run[0], len(run)
    if letter in "GEa" or (letter == "M" and count > 2):
        return _named(letter)
    if letter == "z":
        return _short_zone
    if letter == "Z":
        return _offset if count < 3 else _zone_id
    if letter == "S":
        return _fraction(count)
    numeric = then[:1] in _NUMBERS and not then.startswith("MMM")
    if letter in _YEARS and count == 2:
        return _two_digits(letter, lenient=not numeric)
    if letter in _YEARS:
        return _number(letter, count if numeric else max(count, _LONG_YEAR), signed=letter != "Y")
    return _number(letter, max(count, _DIGITS.get(letter, 0)), signed=letter == "C")


def _literal(wanted: str) -> Step:
    """In any case."""

    def step(text: str, place: int, found: _Read) -> int:
        end = place + len(wanted)
        if text[place:end].lower() != wanted.lower():
            raise ValueError
        return end

    return step


def _number(letter: str, most: int, signed: bool) -> Step:
    of = FIELDS[letter]

    def step(text: str, place: int, found: _Read) -> int:
        sign = _SIGN.match(text, place) if signed else None
        start = sign.end() if sign else place
        digits = _digits(text, start, most)
        found.fields.append((of, -int(digits) if sign and sign[0] == "-" else int(digits)))
        return start + len(digits)

    return step


def _digits(text: str, place: int, most: int) -> str:
    """At least one."""
    run = _RUN.match(text, place, place + most)
    if run is None or not run[0]:
        raise ValueError
    return run[0]


def _two_digits(letter: str, lenient: bool) -> Step:
    """Of two digits, without a sign, the century hangs on the clock, as in Joda; else the year is what is written."""
    of = FIELDS["y" if letter == "Y" else letter]
    last = datetime.now(UTC).year + _YEARS_AHEAD - 1
    written = _number(letter, len("2147483647"), signed=True)

    def step(text: str, place: int, found: _Read) -> int:
        digits = _digits(text, place, 3 if lenient else 2) if not _SIGN.match(text, place) or not lenient else ""
        if len(digits) != 2:
            if not lenient:
                raise ValueError
            return written(text, place, found)
        found.fields.append((of, last - (last - int(digits)) % 100))
        return place + 2

    return step


def _fraction(most: int) -> Step:
    def step(text: str, place: int, found: _Read) -> int:
        digits = _digits(text, place, most)
        found.fields.append((FIELDS["S"], int(digits.ljust(3, "0")[:3])))
        return place + len(digits)

    return step


def _forms(names: Iterable[str], first: int) -> dict[str, int]:
    """Names as they are written, in lower and in upper case; short and long."""
    made: dict[str, int] = {}
    for value, name in enumerate(names, first):
        for short in (name, name[:3]):
            made |= dict.fromkeys((short, short.lower(), short.upper()), value)
    return made


_NAMES = {
    "M": _forms(MONTHS, 1),
    "E": _forms(DAYS, 1),
    "a": _forms(("AM", "PM"), 0),
    "G": _forms(("BC", "AD"), 0) | {"BCE": 0, "bce": 0, "CE": 1, "ce": 1},
}


def _named(letter: str) -> Step:
    names = _NAMES[letter]
    longest = max(map(len, names))

    def step(text: str, place: int, found: _Read) -> int:
        end = _longest(text, place, longest, names)
        found.fields.append((FIELDS[letter], names[text[place:end]]))
        return end

    return step


def _longest(text: str, place: int, most: int, names: Iterable[str]) -> int:
    """Where the longest of the names ends that stands there."""
    for end in range(min(len(text), place + most), place, -1):
        if text[place:end] in names:
            return end
    raise ValueError


def _short_zone(text: str, place: int, found: _Read) -> int:
    end = _longest(text, place, 3, _SHORT_ZONES)
    found.zone = zone(_SHORT_ZONES[text[place:end]])
    return end


def _zone_id(text: str, place: int, found: _Read) -> int:
    slash = text.find("/", place, place + _LONGEST_CONTINENT)
    group = text[place : slash + 1] if slash >= 0 else ""
    names = _zones().get(group, frozenset())
    end = _longest(text, place, max(map(len, names), default=0), names)
    found.zone = zone(text[place:end])
    return end


@cache
def _zones() -> dict[str, frozenset[str]]:
    """By their continent, with its slash."""
    every = available_timezones() - {"Factory", "localtime"}
    groups = {name[: name.find("/") + 1] for name in every}
    return {g: frozenset(n for n in every if n[: n.find("/") + 1] == g) for g in groups}


def _offset(text: str, place: int, found: _Read) -> int:
    """Z, or a sign with hours; then all with colons between, or none."""
    if text[place : place + 1] in ("Z", "z"):
        found.offset_ms = 0
        return place + 1
    hours = _OFFSET.match(text, place)
    if hours is None:
        raise ValueError
    rest = (_WITH_COLONS if text.startswith(":", hours.end()) else _WITHOUT).match(text, hours.end())
    end = hours.end() if rest is None else rest.end()
    _check_end(text, end, rest)
    minutes, seconds, part = rest.groups() if rest else (None, None, None)
    ms = ((int(hours[2]) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)) * 1000
    ms += int((part or "0").ljust(3, "0"))
    found.offset_ms = -ms if hours[1] == "-" else ms
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
