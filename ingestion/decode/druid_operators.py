"""Druid's operators, by the kinds of their two sides. Longs wrap around, doubles may become infinite."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

from ingestion.decode.druid_values import (
    Array,
    EvaluationFailed,
    Nested,
    Value,
    as_double,
    to_json_value,
    to_units,
    wrap_long,
)

Binary = Callable[[Value, Value], Value]
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def _arithmetic(
    longs: Callable[[int, int], int], doubles: Callable[[float, float], float], texts: Callable[[str, str], str] | None
) -> Binary:
    def apply(one: Value, other: Value) -> Value:
        if one is None or other is None:
            return None
        if isinstance(one, int) and isinstance(other, int):
            return wrap_long(longs(one, other))
        if isinstance(one, str) and isinstance(other, str):
            if texts is None:
                raise EvaluationFailed
            return texts(one, other)
        left, right = _double(one), _double(other)
        return None if left is None or right is None else doubles(left, right)

    return apply


def _double(value: Value) -> float | None:
    return None if isinstance(value, Array | Nested) else as_double(value)


def _comparison(sign: str) -> Binary:
    compare = _COMPARISONS[sign]

    def apply(one: Value, other: Value) -> Value:
        if one is None or other is None:
            return None
        if isinstance(one, int) and isinstance(other, int):
            return int(compare(one, other))
        if isinstance(one, str) and isinstance(other, str):
            plain = sign in ("==", "!=") or (one.isascii() and other.isascii())
            return int(compare(one, other) if plain else compare(to_units(one), to_units(other)))
        if isinstance(one, Array) and isinstance(other, Array):
            return _compare_arrays(sign, one, other)
        left, right = _double(one), _double(other)
        return None if left is None or right is None else int(compare(left, right))

    return apply


def _compare_arrays(sign: str, left: Array, right: Array) -> int:
    if sign not in ("==", "!=") or left.element != right.element:
        raise EvaluationFailed
    return int((to_json_value(left) == to_json_value(right)) == (sign == "=="))


def _divide_longs(left: int, right: int) -> int:
    if not right:
        raise EvaluationFailed
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


def _modulo_longs(left: int, right: int) -> int:
    return left - right * _divide_longs(left, right)


def quotient(left: float, right: float) -> float:
    """Of doubles."""
    if right:
        return left / right
    return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1, right)


def _modulo_doubles(left: float, right: float) -> float:
    return math.nan if not right or math.isinf(left) else math.fmod(left, right)


def _power_of_longs(left: int, right: int) -> int:
    if not 0 <= right < 2**31:
        raise EvaluationFailed
    return wrap_long(pow(left, right, 2**64))


def power(left: float, right: float) -> float:
    """Of doubles, as Java has it."""
    try:
        raised = math.pow(left, right)
    except OverflowError:
        is_odd = right % 2 == 1
        return -math.inf if left < 0 and is_odd else math.inf
    except ValueError:
        return math.nan if left else math.inf
    return math.nan if abs(left) == 1 and (math.isinf(right) or right != right) else raised


def negative(value: Value) -> Value:
    """The unary minus."""
    if isinstance(value, int):
        return wrap_long(-value)
    if value is None or isinstance(value, float):
        return None if value is None else -value
    raise EvaluationFailed


BINARY: dict[str, Binary] = {
    "+": _arithmetic(add, add, add),
    "-": _arithmetic(sub, sub, None),
    "*": _arithmetic(mul, mul, None),
    "/": _arithmetic(_divide_longs, quotient, None),
    "%": _arithmetic(_modulo_longs, _modulo_doubles, None),
    "^": _arithmetic(_power_of_longs, power, None),
    **{sign: _comparison(sign) for sign in _COMPARISONS},
}
