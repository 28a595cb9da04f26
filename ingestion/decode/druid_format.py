"""Druid's function ``format``: Java's ``String.format``, of English and of UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from struct import pack

from ingestion.decode.druid_datetimes import to_datetime
from ingestion.decode.druid_strings import check_length
from ingestion.decode.druid_values import (
    WIDE_CONTEXT,
    Array,
    EvaluationFailed,
    Nested,
    Value,
    as_text,
    java_text,
    number_text,
    to_units,
)

_CONVERSION = re.compile(r"%(\d+\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([tT]?)([a-zA-Z%])", re.ASCII)
_MAX_PLACES = 300
_NUMBER_KINDS = "doxefga"
_INTEGER_KINDS = "dox"
_DIGITS = 6  # behind the point, unless it says how many
# Flags that a conversion has no use for, beside those that it has: Java throws.
_REFUSED = {
    "b": "#+ 0,(",
    "h": "#+ 0,(",
    "s": "#+ 0,(",
    "c": "#+ 0,(",
    "t": "#+ 0,(",
    "d": "#",
    "o": ",",
    "x": ",",
    "e": ",",
    "g": "#",
    "f": "",
    "a": ",(",
    "%": "#+ 0,(<",
}
_FIRST_GREGORIAN_MS = -12_219_292_800_000  # dates before are Julian in Java
_TIMES = {
    "H": "%H",
    "I": "%I",
    "M": "%M",
    "S": "%S",
    "B": "%B",
    "b": "%b",
    "h": "%b",
    "A": "%A",
    "a": "%a",
    "y": "%y",
    "j": "%j",
    "m": "%m",
    "d": "%d",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "r": "%I:%M:%S %p",
    "D": "%m/%d/%y",
}


class _IllegalFormat(Exception):
    """Java would throw."""


def format_(written: Value, *values: Value) -> Value:
    """Where Java throws, the values stand behind the pattern."""
    template = as_text(written)
    if template is None:
        return None
    if not values:
        return template
    if any(isinstance(v, Array) or (isinstance(v, Nested) and not isinstance(v.value, dict)) for v in values):
        raise EvaluationFailed
    try:
        text = _Formatter(values).text(template)
    except _IllegalFormat:
        text = "; ".join([template, *("null" if v is None else str(as_text(v)) for v in values)])
    check_length(len(text))
    return text


@dataclass(frozen=True)
class _Conversion:
    flags: str
    width: int | None
    places: int | None  # behind the point
    kind: str  # in lower case; t of all times
    part: str  # of a time
    upper: bool

    def check(self) -> None:
        """Raises ``_IllegalFormat`` of what Java does not read."""
        flags = self.flags
        if len(set(flags)) < len(flags) or set(flags) & set(_REFUSED[self.kind]):
            raise _IllegalFormat
        if self.width is None and set(flags) & set("-0"):
            raise _IllegalFormat
        if {"-", "0"} <= set(flags) or {"+", " "} <= set(flags):
            raise _IllegalFormat
        if self.places is not None and self.kind in "doxct%":
            raise _IllegalFormat

    def aligned(self, text: str) -> str:
        text = text.upper() if self.upper else text
        if self.width is None:
            return text
        check_length(self.width)
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)


def _conversion(flags: str, width: str | None, places: str | None, timely: str, letter: str) -> _Conversion:
    small = letter.lower()
    if timely:
        kind, part, upper = "t", letter, timely == "T"
    elif small in _REFUSED and small != "t" and (letter == small or small in "bhscxega"):
        kind, part, upper = small, "", letter != small
    else:
        raise _IllegalFormat
    wide = None if width is None else int(width)
    conversion = _Conversion(flags, wide, None if places is None else int(places), kind, part, upper)
    conversion.check()
    return conversion


class _Formatter:
    def __init__(self, values: tuple[Value, ...]) -> None:
        self._values = values
        self._next = 0
        self._last = -1  # that of the conversion before

    def text(self, template: str) -> str:
        if "%" in _CONVERSION.sub("", template):
            raise _IllegalFormat
        matches = list(_CONVERSION.finditer(template))
        for match in matches:
            if match[6] != "n":  # all are read before any is written
                _conversion(*match.groups()[1:])
        return _CONVERSION.sub(self._format_match, template)

    def _format_match(self, match: re.Match[str]) -> str:
        place, flags, width, places, timely, letter = match.groups()
        if letter == "n" and not timely:
            if flags or width or places:
                raise _IllegalFormat
            return "\n"
        how = _conversion(flags, width, places, timely, letter)
        if how.kind == "%":
            return how.aligned("%")
        return _convert(self._value(place, "<" in flags), how)

    def _value(self, place: str | None, uses_last: bool) -> Value:
        if place == "0$":
            raise EvaluationFailed
        number = self._last if uses_last else self._next if place is None else int(place[:-1]) - 1
        self._next += place is None and not uses_last
        self._last = number
        if not 0 <= number < len(self._values):
            raise _IllegalFormat
        return self._values[number]


def _convert(value: Value, how: _Conversion) -> str:
    if how.kind in "bhs":
        return how.aligned(_general(value, how.kind)[: how.places])
    if value is None:
        return how.aligned("null"[: how.places])
    if how.kind in _NUMBER_KINDS:
        return _number(value, how)
    if how.kind == "c" or not isinstance(value, int):
        raise _IllegalFormat
    return how.aligned(_format_time(value, how.part))


def _general(value: Value, kind: str) -> str:
    if kind == "b":
        return "false" if value is None else "true"
    if kind == "h" and value is not None:
        return f"{_hash(value) & 0xFFFFFFFF:x}"
    if isinstance(value, Nested):
        return java_text(value.value)
    return "null" if value is None else as_text(value) or ""


def _hash(value: Value) -> int:
    """Java's."""
    if isinstance(value, float):
        value = int.from_bytes(pack(">d", value))
    if isinstance(value, int):
        return (value ^ (value % 2**64 >> 32)) & 0xFFFFFFFF
    if not isinstance(value, str):
        raise EvaluationFailed
    java_hash, coded = 0, to_units(value)
    for offset in range(0, len(coded), 2):
        java_hash = (31 * java_hash + int.from_bytes(coded[offset : offset + 2])) & 0xFFFFFFFF
    return java_hash


def _number(value: Value, how: _Conversion) -> str:
    if how.kind in _INTEGER_KINDS:
        if not isinstance(value, int):
            raise _IllegalFormat
        return _integer(value, how)
    if not isinstance(value, float):
        raise _IllegalFormat
    if value != value or abs(value) == float("inf"):
        return how.aligned(_signed(number_text(abs(value)), value < 0, how, padded=False))
    if how.kind == "a":
        return _hexadecimal(value, how)
    negative = number_text(value).startswith("-")
    return how.aligned(_signed(_grouped(_magnitude(abs(value), how), how), negative, how))


def _integer(value: int, how: _Conversion) -> str:
    if how.kind == "d":
        return how.aligned(_signed(_grouped(str(abs(value)), how), value < 0, how))
    if set(how.flags) & set("+ ("):
        raise _IllegalFormat
    prefix = ("0x" if how.kind == "x" else "0") if "#" in how.flags else ""
    digits = format(value % 2**64, how.kind)
    return how.aligned(prefix + (digits.rjust((how.width or 0) - len(prefix), "0") if "0" in how.flags else digits))


def _grouped(digits: str, how: _Conversion) -> str:
    if "," not in how.flags:
        return digits
    integer_part, mark, rest = digits.partition(".")
    if not integer_part.isdigit():
        raise EvaluationFailed
    return f"{int(integer_part):,}{mark}{rest}"


def _signed(digits: str, negative: bool, how: _Conversion, padded: bool = True) -> str:
    before, behind = "", ""
    if negative:
        before, behind = ("(", ")") if "(" in how.flags else ("-", "")
    elif "+" in how.flags and digits != "NaN":
        before = "+"
    elif " " in how.flags and digits != "NaN":
        before = " "
    if padded and "0" in how.flags:
        check_length(how.width or 0)
        digits = digits.rjust((how.width or 0) - len(before) - len(behind), "0")
    return before + digits + behind


def _magnitude(value: float, how: _Conversion) -> str:
    places = _DIGITS if how.places is None else how.places
    if places > _MAX_PLACES:
        raise EvaluationFailed
    digits = Decimal(number_text(value))
    if how.kind == "g":
        return _shortest(digits, max(places, 1))
    shown = _fixed(digits, places) if how.kind == "f" else _scientific(digits, places)
    if "#" in how.flags and not places:
        mantissa, mark, exponent = shown.partition("e")
        return f"{mantissa}.{mark}{exponent}"
    return shown


def _fixed(digits: Decimal, places: int) -> str:
    """Half up, of the shortest digits, as Java."""
    return f"{digits.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE_CONTEXT):f}"


def _scientific(digits: Decimal, places: int) -> str:
    if not digits:
        return f"{_fixed(digits, places)}e+00"
    exponent = digits.adjusted()
    mantissa = digits.scaleb(-exponent, WIDE_CONTEXT).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE_CONTEXT)
    if mantissa >= 10:
        mantissa, exponent = (
            (mantissa / 10).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE_CONTEXT),
            exponent + 1,
        )
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _shortest(digits: Decimal, most: int) -> str:
    """So many digits in all, with an exponent where there would be too many zeros."""
    if not digits:
        return _fixed(digits, most - 1)
    exponent = int(_scientific(digits, most - 1).partition("e")[2])
    if -4 <= exponent < most:
        return _fixed(digits, most - 1 - exponent)
    return _scientific(digits, most - 1)


def _hexadecimal(value: float, how: _Conversion) -> str:
    if how.places is not None or "0" in how.flags:
        raise EvaluationFailed
    mantissa, exponent = abs(value).hex().split("p")
    integer_part, _, rest = mantissa.partition(".")
    text = f"{integer_part}.{rest.rstrip('0') or '0'}p{int(exponent)}" if value else "0x0.0p0"
    return how.aligned(_signed(text, number_text(value).startswith("-"), how))


def _format_time(ms: int, part: str) -> str:
    if part in "sQ":
        return str(ms if part == "Q" else ms // 1000 if ms >= 0 else -(-ms // 1000))
    if ms < _FIRST_GREGORIAN_MS:
        raise EvaluationFailed
    return _format_date(to_datetime(ms), part)


def _format_date(time: datetime, part: str) -> str:
    clock = time.hour % 12 or 12
    special = {
        "k": str(time.hour),
        "l": str(clock),
        "L": f"{time.microsecond // 1000:03}",
        "N": f"{time.microsecond:06}000",
        "p": "am" if time.hour < 12 else "pm",
        "z": "+0000",
        "Z": "UTC",
        "Y": f"{time.year:04}",
        "C": f"{time.year // 100:02}",
        "e": str(time.day),
        "F": f"{time.year:04}-{time:%m-%d}",
        "c": f"{time:%a %b %d %H:%M:%S} UTC {time.year:04}",
    }
    if part in special:
        return special[part]
    if part not in _TIMES:
        raise _IllegalFormat
    return time.strftime(_TIMES[part])
