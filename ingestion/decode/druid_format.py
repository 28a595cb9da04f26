"""Druid's function ``format``: Java's ``String.format``, of English and of UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from struct import pack

from ingestion.decode.druid_moments import moment
from ingestion.decode.druid_texts import bounded
from ingestion.decode.druid_values import WIDE, Array, Fails, Nested, Value, as_text, java_text, number_text, units

_CONVERSION = re.compile(r"%(\d+\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([tT]?)([a-zA-Z%])", re.ASCII)
_MOST_PLACES = 300
_NUMBERS = "doxefga"
_WHOLE = "dox"
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


class _Unfit(Exception):
    """Java would throw."""


def format_(written: Value, *values: Value) -> Value:
    """Where Java throws, the values stand behind the pattern."""
    template = as_text(written)
    if template is None:
        return None
    if not values:
        return template
    if any(isinstance(v, Array) or (isinstance(v, Nested) and not isinstance(v.value, dict)) for v in values):
        raise Fails
    try:
        made = _Formatter(values).text(template)
    except _Unfit:
        made = "; ".join([template, *("null" if v is None else str(as_text(v)) for v in values)])
    bounded(len(made))
    return made


@dataclass(frozen=True)
class _Conversion:
    flags: str
    width: int | None
    places: int | None  # behind the point
    kind: str  # in lower case; t of all times
    part: str  # of a time
    upper: bool

    def check(self) -> None:
        """Raises ``_Unfit`` of what Java does not read."""
        flags = self.flags
        if len(set(flags)) < len(flags) or set(flags) & set(_REFUSED[self.kind]):
            raise _Unfit
        if self.width is None and set(flags) & set("-0"):
            raise _Unfit
        if {"-", "0"} <= set(flags) or {"+", " "} <= set(flags):
            raise _Unfit
        if self.places is not None and self.kind in "doxct%":
            raise _Unfit

    def aligned(self, text: str) -> str:
        text = text.upper() if self.upper else text
        if self.width is None:
            return text
        bounded(self.width)
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)


def _conversion(flags: str, width: str | None, places: str | None, timely: str, letter: str) -> _Conversion:
    small = letter.lower()
    if timely:
        kind, part, upper = "t", letter, timely == "T"
    elif small in _REFUSED and small != "t" and (letter == small or small in "bhscxega"):
        kind, part, upper = small, "", letter != small
    else:
        raise _Unfit
    wide = None if width is None else int(width)
    found = _Conversion(flags, wide, None if places is None else int(places), kind, part, upper)
    found.check()
    return found


class _Formatter:
    def __init__(self, values: tuple[Value, ...]) -> None:
        self._values = values
        self._next = 0
        self._last = -1  # that of the conversion before

    def text(self, template: str) -> str:
        if "%" in _CONVERSION.sub("", template):
            raise _Unfit
        every = list(_CONVERSION.finditer(template))
        for found in every:
            if found[6] != "n":  # all are read before any is written
                _conversion(*found.groups()[1:])
        return _CONVERSION.sub(self._put, template)

    def _put(self, found: re.Match[str]) -> str:
        place, flags, width, places, timely, letter = found.groups()
        if letter == "n" and not timely:
            if flags or width or places:
                raise _Unfit
            return "\n"
        how = _conversion(flags, width, places, timely, letter)
        if how.kind == "%":
            return how.aligned("%")
        return _shown(self._value(place, "<" in flags), how)

    def _value(self, place: str | None, again: bool) -> Value:
        if place == "0$":
            raise Fails
        number = self._last if again else self._next if place is None else int(place[:-1]) - 1
        self._next += place is None and not again
        self._last = number
        if not 0 <= number < len(self._values):
            raise _Unfit
        return self._values[number]


def _shown(value: Value, how: _Conversion) -> str:
    if how.kind in "bhs":
        return how.aligned(_general(value, how.kind)[: how.places])
    if value is None:
        return how.aligned("null"[: how.places])
    if how.kind in _NUMBERS:
        return _number(value, how)
    if how.kind == "c" or not isinstance(value, int):
        raise _Unfit
    return how.aligned(_of_time(value, how.part))


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
        raise Fails
    found, coded = 0, units(value)
    for place in range(0, len(coded), 2):
        found = (31 * found + int.from_bytes(coded[place : place + 2])) & 0xFFFFFFFF
    return found


def _number(value: Value, how: _Conversion) -> str:
    if how.kind in _WHOLE:
        if not isinstance(value, int):
            raise _Unfit
        return _whole(value, how)
    if not isinstance(value, float):
        raise _Unfit
    if value != value or abs(value) == float("inf"):
        return how.aligned(_signed(number_text(abs(value)), value < 0, how, padded=False))
    if how.kind == "a":
        return _hexadecimal(value, how)
    negative = number_text(value).startswith("-")
    return how.aligned(_signed(_grouped(_magnitude(abs(value), how), how), negative, how))


def _whole(value: int, how: _Conversion) -> str:
    if how.kind == "d":
        return how.aligned(_signed(_grouped(str(abs(value)), how), value < 0, how))
    if set(how.flags) & set("+ ("):
        raise _Unfit
    prefix = ("0x" if how.kind == "x" else "0") if "#" in how.flags else ""
    digits = format(value % 2**64, how.kind)
    return how.aligned(prefix + (digits.rjust((how.width or 0) - len(prefix), "0") if "0" in how.flags else digits))


def _grouped(digits: str, how: _Conversion) -> str:
    if "," not in how.flags:
        return digits
    whole, mark, rest = digits.partition(".")
    if not whole.isdigit():
        raise Fails
    return f"{int(whole):,}{mark}{rest}"


def _signed(digits: str, negative: bool, how: _Conversion, padded: bool = True) -> str:
    before, behind = "", ""
    if negative:
        before, behind = ("(", ")") if "(" in how.flags else ("-", "")
    elif "+" in how.flags and digits != "NaN":
        before = "+"
    elif " " in how.flags and digits != "NaN":
        before = " "
    if padded and "0" in how.flags:
        bounded(how.width or 0)
        digits = digits.rjust((how.width or 0) - len(before) - len(behind), "0")
    return before + digits + behind


def _magnitude(value: float, how: _Conversion) -> str:
    places = _DIGITS if how.places is None else how.places
    if places > _MOST_PLACES:
        raise Fails
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
    return f"{digits.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE):f}"


def _scientific(digits: Decimal, places: int) -> str:
    if not digits:
        return f"{_fixed(digits, places)}e+00"
    exponent = digits.adjusted()
    mantissa = digits.scaleb(-exponent, WIDE).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE)
    if mantissa >= 10:
        mantissa, exponent = (mantissa / 10).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE), exponent + 1
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
        raise Fails
    mantissa, exponent = abs(value).hex().split("p")
    whole, _, rest = mantissa.partition(".")
    text = f"{whole}.{rest.rstrip('0') or '0'}p{int(exponent)}" if value else "0x0.0p0"
    return how.aligned(_signed(text, number_text(value).startswith("-"), how))


def _of_time(ms: int, part: str) -> str:
    if part in "sQ":
        return str(ms if part == "Q" else ms // 1000 if ms >= 0 else -(-ms // 1000))
    if ms < _FIRST_GREGORIAN_MS:
        raise Fails
    return _of_moment(moment(ms), part)


def _of_moment(time: datetime, part: str) -> str:
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
        raise _Unfit
    return time.strftime(_TIMES[part])
