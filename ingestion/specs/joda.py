"""Joda's time patterns, as Druid's ``timestampSpec`` has them, in strptime's letters.

Letters are fields, all else stands for itself; text between single quotes too, and two of them are one quote. What
strptime reads in another way than Joda, or not at all, is refused: better no time than a wrong one.
"""

from __future__ import annotations

import re
from itertools import product

# A letter's run, by its length (0: any other length), to the strptime fields of which one has to match.
_FIELDS: dict[str, dict[int, tuple[str, ...]]] = {
    "y": {1: ("%Y",), 4: ("%Y",)},
    "Y": {1: ("%Y",), 4: ("%Y",)},
    "M": {1: ("%m",), 2: ("%m",), 0: ("%b", "%B")},
    "d": {1: ("%d",), 2: ("%d",)},
    "D": {1: ("%j",), 2: ("%j",), 3: ("%j",)},
    "E": {0: ("%a", "%A")},
    "a": {0: ("%p",)},
    "H": {1: ("%H",), 2: ("%H",)},
    "h": {1: ("%I",), 2: ("%I",)},
    "m": {1: ("%M",), 2: ("%M",)},
    "s": {1: ("%S",), 2: ("%S",)},
    "S": dict.fromkeys(range(1, 10), ("%f",)),
    "Z": {1: ("%z",), 2: ("%z",)},
}
_WHY = {
    "yy": "a year of two digits means other centuries in Joda than here; write yyyy if the records have four",
    "YY": "a year of two digits means other centuries in Joda than here; write YYYY if the records have four",
    "z": "names of time zones are not read; records need an offset such as +0200 (Z)",
    "ZZZ": "names of time zones are not read; records need an offset such as +0200 (Z)",
    "T": "a letter that stands for itself is written between quotes: 'T'",
}
_PARTS = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)|(')")
_MOST_NAMES = 4  # each doubles the patterns of which one has to match
_HALF_DAY = {"%p", "%I"}


def strptime_patterns(pattern: str) -> list[str]:
    """The strptime patterns of which a text that fits the Joda ``pattern`` fits one. Raises ``ValueError``."""
    choices = [_choices(*part) for part in _PARTS.findall(pattern)]
    held = {field for choice in choices for field in choice}
    if not any(field.startswith("%") and field != "%%" for field in held):
        raise ValueError("a pattern needs at least one field, such as yyyy-MM-dd HH:mm:ss")
    if len(held & _HALF_DAY) == 1:
        raise ValueError("letters 'h' and 'a' belong together: an hour of 1 to 12 needs AM or PM")
    if sum(len(choice) > 1 for choice in choices) > _MOST_NAMES:
        raise ValueError(f"names of months and weekdays (MMM, EEE) stand more than {_MOST_NAMES} times")
    return ["".join(fields) for fields in product(*choices)]


def _choices(quoted: str, run: str, letter: str, other: str, quote: str) -> tuple[str, ...]:
    if quote:
        raise ValueError("a quote (') is not closed; write '' for a quote itself")
    if not run:
        # Empty quotes are one quote in Joda; inside of quotes two of them are one.
        text = other or quoted.replace("''", "'") or "'"
        return (text.replace("%", "%%"),)
    fields = _FIELDS.get(letter, {})
    field = fields.get(len(run), fields.get(0))
    if field is None:
        reason = _WHY.get(run) or _WHY.get(letter) or "it is not supported here"
        raise ValueError(f"letter {letter!r} (in {run!r}): {reason}")
    return field
