"""Values of Druid's expression language, and how one kind is taken for another.

A value is None, an ``int`` (a long of 64 bits), a ``float`` (a double), a ``str`` without any half of a character, an
``Array`` or a ``Nested``. Booleans are longs 1 and 0. Source: what a real Druid answers (``tests/golden``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context
from typing import Any, Literal

from ingestion.decode.exact_numbers import ExactNumber

WIDE_CONTEXT = Context(prec=700)  # for the digits of any double
MIN_LONG, MAX_LONG = -(2**63), 2**63 - 1
Element = Literal["LONG", "DOUBLE", "STRING", "ARRAY", "COMPLEX<json>"]
_MIN_DOUBLE = 5e-324
_MANY_DIGITS = 400  # no long has them
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d{1,9}[fFdD]?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


class EvaluationFailed(Exception):
    """The expression has no value for this record, or none that is known here."""


@dataclass(frozen=True)
class Array:
    """Several values."""

    element: Element  # the kind that they have or are taken for
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Nested:
    """What stood as an object, or as a list of more than plain values, in JSON."""

    value: Any


Value = None | int | float | str | Array | Nested


def from_json(value: Any) -> Value:
    """What JSON says; numbers that no long and no double holds fail."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return check_long(value)
    if isinstance(value, float):
        return check_finite(value)
    if isinstance(value, list):
        return _from_list(value)
    return Nested(value) if isinstance(value, dict) else text_or_null(value)


def text_or_null(value: Any) -> str | None:
    """A text with a half of a character in it fails."""
    return None if value is None else checked_text(value)


def checked_text(text: str) -> str:
    """The text, if no half of a character is in it: such texts can't be stored."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise EvaluationFailed from None
    return text


def _from_list(values: list[Any]) -> Value:
    if any(isinstance(v, dict | list) for v in values):
        return Nested(values)
    return array_of([from_json(v) for v in values])


def array_of(values: Iterable[Value]) -> Array:
    """An array of the kind that all of its values can be taken for."""
    every = tuple(values)
    kinds = {kind_of(v) for v in every if v is not None}
    if "COMPLEX<json>" in kinds:
        return Array("COMPLEX<json>", every)
    if "ARRAY" in kinds:
        return _array_of_arrays(every)
    if "STRING" in kinds or not kinds:
        return Array("STRING", tuple(as_text(v) for v in every))
    if "DOUBLE" in kinds:
        return Array("DOUBLE", tuple(as_double(v) for v in every))
    return Array("LONG", every)


def _array_of_arrays(every: tuple[Value, ...]) -> Array:
    """All of one kind: of numbers and texts what each can be taken for; a plain value is an array of one."""
    inner = [v if isinstance(v, Array) else Array(kind_of(v), (v,)) for v in every if v is not None]
    kinds = {v.element for v in inner}
    if len(kinds) > 1:
        if kinds - {"LONG", "DOUBLE", "STRING"}:
            raise EvaluationFailed
        element: Element = "STRING" if "STRING" in kinds else "DOUBLE"
        convert = as_text if element == "STRING" else as_double
        inner = [Array(element, tuple(convert(i) for i in v.values)) for v in inner]
    if len({i.element for v in inner for i in v.values if isinstance(i, Array)}) > 1:
        raise EvaluationFailed
    arrays = iter(inner)
    return Array("ARRAY", tuple(None if v is None else next(arrays) for v in every))


def kind_of(value: Value) -> Element:
    if isinstance(value, int):
        return "LONG"
    if isinstance(value, float):
        return "DOUBLE"
    if isinstance(value, Array):
        return "ARRAY"
    return "COMPLEX<json>" if isinstance(value, Nested) else "STRING"


def check_long(value: int) -> int:
    if not MIN_LONG <= value <= MAX_LONG:
        raise EvaluationFailed
    return value


def wrap_long(value: int) -> int:
    """What 64 bits keep of a sum."""
    return (value + 2**63) % 2**64 - 2**63


def check_finite(value: float) -> float:
    if value != value or value in (float("inf"), float("-inf")):
        raise EvaluationFailed
    return value


def parse_number(text: str) -> int | float | None:
    """The number that a text holds as Java reads it: no blanks, no hexadecimal."""
    if _WHOLE.fullmatch(text):
        integer = int(text) if len(text) < _MANY_DIGITS else MAX_LONG + 1
        return integer if MIN_LONG <= integer <= MAX_LONG else float(text)
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD") if not text.endswith("Infinity") else text)
    if _HEXADECIMAL.fullmatch(text):
        return _parse_hexadecimal(text.rstrip("fFdD"))
    folded = text.lower()
    return 1 if folded == "true" else 0 if folded == "false" else None


def _parse_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def number(value: Value) -> int | float | None:
    """The value as a number; None where it is none."""
    if isinstance(value, str):
        return parse_number(value)
    if isinstance(value, Array):
        return number(value.values[0]) if len(value.values) == 1 else None
    return value if isinstance(value, int | float) else None


def as_double(value: Value) -> float | None:
    parsed = number(value)
    return None if parsed is None else float(parsed)


def as_long(value: Value) -> int | None:
    """The whole part; what is beyond a long becomes the nearest one."""
    parsed = number(value)
    return to_long(parsed) if isinstance(parsed, float) else parsed


def to_long(value: float) -> int:
    """Java's cast."""
    if value != value:
        return 0
    return (
        int(max(float(MIN_LONG), min(value, float(MAX_LONG))))
        if abs(value) < 2.0**63
        else (MAX_LONG if value > 0 else MIN_LONG)
    )


def as_int(value: Value) -> int:
    """Java's int of it: null is 0, and of a long the lower 32 bits."""
    parsed = number(value) or 0
    if isinstance(parsed, float):
        return max(-(2**31), min(to_long(parsed), 2**31 - 1))
    return (parsed + 2**31) % 2**32 - 2**31


def is_true(value: Value) -> bool:
    """Numbers greater than 0, and the text ``true``."""
    if isinstance(value, str):
        return value.lower() == "true"
    return isinstance(value, int | float) and value > 0


def as_text(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Array):
        if len(value.values) == 1:
            return as_text(value.values[0])
        return "[" + ", ".join("null" if v is None else str(as_text(v)) for v in value.values) + "]"
    return java_text(value.value) if isinstance(value, Nested) else number_text(value)


def number_text(value: float) -> str:
    """A number as Java writes it."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, ExactNumber):
        return value.text
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{value!r}"
        return plain if "e" not in plain else f"{value:f}"
    if abs(value) == _MIN_DOUBLE:
        return "4.9E-324" if value > 0 else "-4.9E-324"  # not the shortest
    digits, exponent = f"{value:.17e}".split("e")
    for precision in range(17):
        tried = f"{value:.{precision}e}"
        if float(tried) == value:
            digits, exponent = tried.split("e")
            break
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def java_text(value: Any) -> str:
    """Java's text of maps and lists."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={java_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(java_text(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return value if isinstance(value, str) else number_text(value)


def to_json_value(value: Value) -> Any:
    """The value in JSON's terms."""
    if isinstance(value, Array):
        return [to_json_value(v) for v in value.values]
    return value.value if isinstance(value, Nested) else value


def cast(value: Value, element: Element) -> Value:
    """To a plain kind."""
    if value is None:
        return None
    if isinstance(value, Array):
        if len(value.values) != 1:
            raise EvaluationFailed
        value = value.values[0]
    if isinstance(value, Nested):
        raise EvaluationFailed
    if element == "LONG":
        return as_long(value)
    return as_double(value) if element == "DOUBLE" else as_text(value)


def as_array(value: Value) -> Array | None:
    """A plain value is an array of one."""
    if value is None or isinstance(value, Array):
        return value
    if isinstance(value, Nested):
        if not isinstance(value.value, list):
            raise EvaluationFailed
        return Array(
            "COMPLEX<json>", tuple(v if isinstance(v, str) or v is None else from_json(v) for v in value.value)
        )
    return Array(kind_of(value), (value,))


def to_units(text: str) -> bytes:
    """UTF-16, in which Java counts and sorts."""
    return text.encode("utf-16-be", "surrogatepass")


def from_units(units_: bytes) -> str:
    """Fails where a character was cut in half."""
    try:
        return units_.decode("utf-16-be")
    except UnicodeDecodeError:
        raise EvaluationFailed from None


def utf16_length(text: str) -> int:
    """In UTF-16."""
    return len(text) if text.isascii() or max(text) <= "\uffff" else len(to_units(text)) // 2


def slice_units(text: str, start: int, end: int) -> str:
    """By places in UTF-16."""
    if text.isascii() or max(text) <= "\uffff":
        return text[start:end]
    return from_units(to_units(text)[2 * start : 2 * end])
