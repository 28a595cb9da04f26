"""A time's text as Druid's parser of timestamps reads it, one by one: what DuckDB is not asked, or leaves null.

| format | what is read |
|---|---|
| auto | digits alone: milliseconds. Else ISO 8601 with ``T`` or a blank; a zone's name behind a blank is passed over |
| iso | ISO 8601 with ``T``; what is none: a whole number of milliseconds |
| Joda's pattern | see ``joda_reader`` |

Blanks around are dropped, and so is one pair of quotes. Numbers in JSON come as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from zoneinfo import available_timezones

from ingestion.decode import joda_reader
from ingestion.decode.druid_datetimes import iso_ms
from ingestion.decode.druid_values import EvaluationFailed

ReadTime = Callable[[str], int | None]
_DIGITS = re.compile(r"[0-9]+")
_TIME_ALONE = re.compile(r"[Tt][0-9]")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_LONGEST = 200  # characters of a time
_BEYOND = 2**63
_MIN_BEFORE_ZONE = 3  # characters
# Java's names of zones that the time zone database has not.
_JAVA_ZONES = "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST"


def reader(time_format: str) -> ReadTime:
    """Reads texts (of JSON strings, without their quotes) of ``auto``, ``iso`` or Joda's pattern: milliseconds.

    None where there is no time, or one before year 1 or after year 9999.
    """
    if time_format == "auto":
        return _bounded(_read_auto)
    if time_format == "iso":
        return _bounded(_read_iso)
    read = joda_reader.reader(time_format, None)
    return _bounded(lambda text: read(_strip(text)))


def _bounded(read: ReadTime) -> ReadTime:
    def bounded(text: str) -> int | None:
        try:
            ms = read(text) if len(text) <= _LONGEST else None
        except EvaluationFailed:
            return None
        return ms if ms is None or abs(ms) < _BEYOND else None

    return bounded


def _read_auto(text: str) -> int | None:
    if _DIGITS.fullmatch(text):
        return int(text)
    text = _strip(text)
    before, _, last = text.rpartition(" ")
    if len(before) >= _MIN_BEFORE_ZONE and last in _zone_names():
        text = before
    return None if text.startswith(("T", "t")) else iso_ms(text, blank=True)


def _read_iso(text: str) -> int | None:
    text = _strip(text)
    ms = iso_ms(f"1970-01-01{text}" if _TIME_ALONE.match(text) else text)
    return int(text) if ms is None and _WHOLE.fullmatch(text) else ms


def _strip(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


@cache
def _zone_names() -> frozenset[str]:
    return frozenset({*available_timezones(), *_JAVA_ZONES.split()})
