"""Druid's functions of numbers. As in Java they give NaN and infinities where others would fail."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from ingestion.decode.druid_operators import power, quotient
from ingestion.decode.druid_values import (
    GREATEST_LONG,
    LEAST_LONG,
    WIDE,
    Array,
    Fails,
    Nested,
    Value,
    as_double,
    as_int,
    as_long,
    as_text,
    number_text,
    to_long,
    units,
    wrapped,
)

_MOST_DIGITS = 400


def of_double(function: Callable[[float], float]) -> Callable[[Value], Value]:
    """Of a number as a double; null of anything else, texts with numbers too."""

    def made(value: Value) -> Value:
        return _tried(function, float(value)) if isinstance(value, int | float) else None

    return made


def of_doubles(function: Callable[[float, float], float]) -> Callable[[Value, Value], Value]:
    """Of two numbers; beside one a text that holds none is 0."""

    def made(one: Value, other: Value) -> Value:
        if not _numeric(one, other):
            return None
        return _tried(function, _double(one), _double(other))

    return made


def of_numbers(
    longs: Callable[[int, int], Value], doubles: Callable[[float, float], Value]
) -> Callable[[Value, Value], Value]:
    """Of two numbers, which stay longs where both are."""

    def made(one: Value, other: Value) -> Value:
        if isinstance(one, int) and isinstance(other, int):
            return longs(one, other)
        return doubles(_double(one), _double(other)) if _numeric(one, other) else None

    return made


def of_bits(function: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    def made(one: Value, other: Value) -> Value:
        return wrapped(function(as_long(one) or 0, as_long(other) or 0)) if _numeric(one, other) else None

    return made


def _numeric(one: Value, other: Value) -> bool:
    if isinstance(one, Array | Nested) or isinstance(other, Array | Nested):
        raise Fails
    if one is None or other is None:
        return False
    return not (isinstance(one, str) and isinstance(other, str))


def _double(value: Value) -> float:
    found = as_double(value)
    return 0.0 if found is None else found


def _tried(function: Callable[..., float], *values: float) -> float:
    try:
        return function(*values)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def absolute(value: Value) -> Value:
    if isinstance(value, int):
        return wrapped(abs(value))
    return abs(value) if isinstance(value, float) else None


def logarithm(function: Callable[[float], float], zero: float = 0.0) -> Callable[[Value], Value]:
    """Of ``zero`` it is negative infinity."""
    return of_double(lambda value: -math.inf if value == zero else function(value))


def sinh(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) > 711 else math.sinh(value)


def rint(value: float) -> float:
    return value if math.isinf(value) or value != value else math.copysign(float(round(value)), value)


def whole(function: Callable[[float], int]) -> Callable[[Value], Value]:
    """``ceil`` and ``floor``, which keep the sign of zero."""

    def made(value: float) -> float:
        return value if math.isinf(value) or value != value else math.copysign(float(function(value)), value)

    return of_double(made)


def signum(value: float) -> float:
    return value if not value or value != value else math.copysign(1.0, value)


def cot(value: float) -> float:
    return quotient(math.cos(value), math.sin(value))


def hypot(one: float, other: float) -> float:
    return math.hypot(one, other)


def remainder(one: float, other: float) -> float:
    return math.remainder(one, other) if other else math.nan


pow_ = of_doubles(power)


def least(one: float, other: float) -> float:
    """Java's: NaN wins, and -0.0 is below 0.0."""
    if one != one or other != other:
        return math.nan
    return one if one < other or (one == other and math.copysign(1, one) < 0) else other


def greatest(one: float, other: float) -> float:
    if one != one or other != other:
        return math.nan
    return one if one > other or (one == other and math.copysign(1, one) > 0) else other


def divided(one: int, other: int) -> Value:
    if not other:
        raise Fails
    found = abs(one) // abs(other)
    return wrapped(found if (one < 0) == (other < 0) else -found)


def divided_whole(one: float, other: float) -> Value:
    return to_long(quotient(one, other))


def safely_divided(one: int, other: int) -> Value:
    return divided(one, other) if other else None


def safe_quotient(one: float, other: float) -> Value:
    return one / other if other and other == other else None


def complement(value: Value) -> Value:
    return ~_whole_part(value) if isinstance(value, int | float) else None


def _whole_part(value: float) -> int:
    if isinstance(value, int):
        return value
    if not LEAST_LONG <= value <= GREATEST_LONG:
        raise Fails
    return to_long(value)


def double_to_bits(value: Value) -> Value:
    if not isinstance(value, int | float):
        return None
    (bits,) = struct.unpack(">q", struct.pack(">d", float(value)))
    return int(bits)


def bits_to_double(value: Value) -> Value:
    if not isinstance(value, int | float):
        return None
    (found,) = struct.unpack(">d", struct.pack(">q", _whole_part(value)))
    return float(found)


def exponent(value: Value) -> Value:
    if not isinstance(value, int | float):
        return None
    number = float(value)
    if math.isinf(number) or number != number:
        return 1024
    return max(math.frexp(number)[1] - 1, -1023) if number else -1023


def shift_left(one: int, other: int) -> int:
    return one << (other % 64)


def shift_right(one: int, other: int) -> int:
    return one >> (other % 64)


def scalb(value: Value, by: Value) -> Value:
    if not _numeric(value, by):
        return None
    try:
        return math.ldexp(_double(value), as_int(by))
    except OverflowError:
        return math.copysign(math.inf, _double(value))


def rounded(value: Value, places: Value = 0) -> Value:
    """Half up, by the shortest digits of a double."""
    if value is None:
        return None
    if isinstance(value, str) and as_double(value) is None:
        return None
    if not isinstance(value, int | float) or not isinstance(places, int):
        raise Fails
    if isinstance(value, float):
        if value != value:
            return 0.0
        if math.isinf(value):
            return math.copysign(1.7976931348623157e308, value)
    if places > _MOST_DIGITS:
        return value
    if places < -_MOST_DIGITS:
        return value * 0
    exact = Decimal(number_text(value)) if isinstance(value, float) else Decimal(value)
    digits = exact.adjusted() + places + 2
    if digits < 0:
        return type(value)(0)
    if exact.as_tuple().exponent >= -places:  # type: ignore[operator]  # it is finite
        return value + 0
    found = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE)
    return wrapped(int(found)) if isinstance(value, int) else float(found) + 0.0


def reduction(longs: Callable[..., int], doubles: Callable[[float, float], float], first: bool) -> Callable[..., Value]:
    """``greatest`` and ``least``: nulls don't count; texts among them make all texts."""

    def made(*values: Value) -> Value:
        known = [v for v in values if v is not None]
        if any(isinstance(v, Array | Nested) for v in known):
            raise Fails
        if not known:
            return None
        if any(isinstance(v, str) for v in known):
            texts = sorted((as_text(v) or "" for v in known), key=units)
            return texts[0 if first else -1]
        if all(isinstance(v, int) for v in known):
            return longs(v for v in known if isinstance(v, int))
        found, *others = (as_double(v) or 0.0 for v in known)
        for other in others:
            found = doubles(found, other)
        return found

    return made
