"""Druid's functions of numbers. As in Java they give NaN and infinities where others would fail."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from ingestion.decode.druid_operators import power, quotient
from ingestion.decode.druid_values import (
    MAX_LONG,
    MIN_LONG,
    WIDE_CONTEXT,
    Array,
    EvaluationFailed,
    Nested,
    Value,
    as_double,
    as_int,
    as_long,
    as_text,
    number_text,
    to_long,
    to_units,
    wrap_long,
)

_MAX_DIGITS = 400


def unary_double(function: Callable[[float], float]) -> Callable[[Value], Value]:
    """Of a number as a double; null of anything else, texts with numbers too."""

    def apply(value: Value) -> Value:
        return _call_as_java(function, float(value)) if isinstance(value, int | float) else None

    return apply


def binary_double(function: Callable[[float, float], float]) -> Callable[[Value, Value], Value]:
    """Of two numbers; beside one a text that holds none is 0."""

    def apply(left: Value, right: Value) -> Value:
        if not _are_numeric(left, right):
            return None
        return _call_as_java(function, _double(left), _double(right))

    return apply


def binary_number(
    longs: Callable[[int, int], Value], doubles: Callable[[float, float], Value]
) -> Callable[[Value, Value], Value]:
    """Of two numbers, which stay longs where both are."""

    def apply(left: Value, right: Value) -> Value:
        if isinstance(left, int) and isinstance(right, int):
            return longs(left, right)
        return doubles(_double(left), _double(right)) if _are_numeric(left, right) else None

    return apply


def binary_bits(function: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        return wrap_long(function(as_long(left) or 0, as_long(right) or 0)) if _are_numeric(left, right) else None

    return apply


def _are_numeric(left: Value, right: Value) -> bool:
    if isinstance(left, Array | Nested) or isinstance(right, Array | Nested):
        raise EvaluationFailed
    if left is None or right is None:
        return False
    return not (isinstance(left, str) and isinstance(right, str))


def _double(value: Value) -> float:
    double = as_double(value)
    return 0.0 if double is None else double


def _call_as_java(function: Callable[..., float], *values: float) -> float:
    try:
        return function(*values)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def absolute(value: Value) -> Value:
    if isinstance(value, int):
        return wrap_long(abs(value))
    return abs(value) if isinstance(value, float) else None


def logarithm(function: Callable[[float], float], zero: float = 0.0) -> Callable[[Value], Value]:
    """Of ``zero`` it is negative infinity."""
    return unary_double(lambda value: -math.inf if value == zero else function(value))


def sinh(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) > 711 else math.sinh(value)


def rint(value: float) -> float:
    return value if math.isinf(value) or value != value else math.copysign(float(round(value)), value)


def rounding(function: Callable[[float], int]) -> Callable[[Value], Value]:
    """``ceil`` and ``floor``, which keep the sign of zero."""

    def apply(value: float) -> float:
        return value if math.isinf(value) or value != value else math.copysign(float(function(value)), value)

    return unary_double(apply)


def signum(value: float) -> float:
    return value if not value or value != value else math.copysign(1.0, value)


def cot(value: float) -> float:
    return quotient(math.cos(value), math.sin(value))


def hypot(left: float, right: float) -> float:
    return math.hypot(left, right)


def remainder(left: float, right: float) -> float:
    return math.remainder(left, right) if right else math.nan


pow_ = binary_double(power)


def least(left: float, right: float) -> float:
    """Java's: NaN wins, and -0.0 is below 0.0."""
    if left != left or right != right:
        return math.nan
    return left if left < right or (left == right and math.copysign(1, left) < 0) else right


def greatest(left: float, right: float) -> float:
    if left != left or right != right:
        return math.nan
    return left if left > right or (left == right and math.copysign(1, left) > 0) else right


def divide(left: int, right: int) -> Value:
    if not right:
        raise EvaluationFailed
    magnitude = abs(left) // abs(right)
    return wrap_long(magnitude if (left < 0) == (right < 0) else -magnitude)


def divide_to_long(left: float, right: float) -> Value:
    return to_long(quotient(left, right))


def safe_divide(left: int, right: int) -> Value:
    return divide(left, right) if right else None


def safe_quotient(left: float, right: float) -> Value:
    return left / right if right and right == right else None


def complement(value: Value) -> Value:
    return ~_whole_part(value) if isinstance(value, int | float) else None


def _whole_part(value: float) -> int:
    if isinstance(value, int):
        return value
    if not MIN_LONG <= value <= MAX_LONG:
        raise EvaluationFailed
    return to_long(value)


def double_to_bits(value: Value) -> Value:
    if not isinstance(value, int | float):
        return None
    (bits,) = struct.unpack(">q", struct.pack(">d", float(value)))
    return int(bits)


def bits_to_double(value: Value) -> Value:
    if not isinstance(value, int | float):
        return None
    (double,) = struct.unpack(">d", struct.pack(">q", _whole_part(value)))
    return float(double)


def exponent(value: Value) -> Value:
    if not isinstance(value, int | float):
        return None
    number = float(value)
    if math.isinf(number) or number != number:
        return 1024
    return max(math.frexp(number)[1] - 1, -1023) if number else -1023


def shift_left(left: int, right: int) -> int:
    return left << (right % 64)


def shift_right(left: int, right: int) -> int:
    return left >> (right % 64)


def scalb(value: Value, by: Value) -> Value:
    if not _are_numeric(value, by):
        return None
    try:
        return math.ldexp(_double(value), as_int(by))
    except OverflowError:
        return math.copysign(math.inf, _double(value))


def round_half_up(value: Value, places: Value = 0) -> Value:
    """Half up, by the shortest digits of a double."""
    if value is None:
        return None
    if isinstance(value, str) and as_double(value) is None:
        return None
    if not isinstance(value, int | float) or not isinstance(places, int):
        raise EvaluationFailed
    if isinstance(value, float):
        if value != value:
            return 0.0
        if math.isinf(value):
            return math.copysign(1.7976931348623157e308, value)
    if places > _MAX_DIGITS:
        return value
    if places < -_MAX_DIGITS:
        return value * 0
    exact = Decimal(number_text(value)) if isinstance(value, float) else Decimal(value)
    digits = exact.adjusted() + places + 2
    if digits < 0:
        return type(value)(0)
    if exact.as_tuple().exponent >= -places:  # type: ignore[operator]  # it is finite
        return value + 0
    found = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, WIDE_CONTEXT)
    return wrap_long(int(found)) if isinstance(value, int) else float(found) + 0.0


def reduction(longs: Callable[..., int], doubles: Callable[[float, float], float], first: bool) -> Callable[..., Value]:
    """``greatest`` and ``least``: nulls don't count; texts among them make all texts."""

    def apply(*values: Value) -> Value:
        numbers = [v for v in values if v is not None]
        if any(isinstance(v, Array | Nested) for v in numbers):
            raise EvaluationFailed
        if not numbers:
            return None
        if any(isinstance(v, str) for v in numbers):
            texts = sorted((as_text(v) or "" for v in numbers), key=to_units)
            return texts[0 if first else -1]
        if all(isinstance(v, int) for v in numbers):
            return longs(v for v in numbers if isinstance(v, int))
        extreme, *others = (as_double(v) or 0.0 for v in numbers)
        for other in others:
            extreme = doubles(extreme, other)
        return extreme

    return apply
