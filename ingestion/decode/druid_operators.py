"""Druid's operators, by the kinds of their two sides. Longs wrap around, doubles may become infinite."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

from ingestion.decode.druid_values import Array, Fails, Nested, Value, as_double, units, unwrapped, wrapped

Binary = Callable[[Value, Value], Value]
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def _arithmetic(
    longs: Callable[[int, int], int], doubles: Callable[[float, float], float], texts: Callable[[str, str], str] | None
) -> Binary:
    def made(one: Value, other: Value) -> Value:
        if one is None or other is None:
            return None
        if isinstance(one, int) and isinstance(other, int):
            return wrapped(longs(one, other))
        if isinstance(one, str) and isinstance(other, str):
            if texts is None:
                raise Fails
            return texts(one, other)
        left, right = _double(one), _double(other)
        return None if left is None or right is None else doubles(left, right)

    return made


def _double(value: Value) -> float | None:
    return None if isinstance(value, Array | Nested) else as_double(value)


def _compared(sign: str) -> Binary:
    compare = _COMPARED[sign]

    def made(one: Value, other: Value) -> Value:
        if one is None or other is None:
            return None
        if isinstance(one, int) and isinstance(other, int):
            return int(compare(one, other))
        if isinstance(one, str) and isinstance(other, str):
            plain = sign in ("==", "!=") or (one.isascii() and other.isascii())
            return int(compare(one, other) if plain else compare(units(one), units(other)))
        if isinstance(one, Array) and isinstance(other, Array):
            return _arrays_compared(sign, one, other)
        left, right = _double(one), _double(other)
        return None if left is None or right is None else int(compare(left, right))

    return made


def _arrays_compared(sign: str, one: Array, other: Array) -> int:
    if sign not in ("==", "!=") or one.element != other.element:
        raise Fails
    return int((unwrapped(one) == unwrapped(other)) == (sign == "=="))


def _divided(one: int, other: int) -> int:
    if not other:
        raise Fails
    whole = abs(one) // abs(other)
    return whole if (one < 0) == (other < 0) else -whole


def _rest(one: int, other: int) -> int:
    return one - other * _divided(one, other)


def quotient(one: float, other: float) -> float:
    """Of doubles."""
    if other:
        return one / other
    return math.nan if one == 0 or one != one else math.copysign(math.inf, one) * math.copysign(1, other)


def _double_rest(one: float, other: float) -> float:
    return math.nan if not other or math.isinf(one) else math.fmod(one, other)


def _power(one: int, other: int) -> int:
    if not 0 <= other < 2**31:
        raise Fails
    return wrapped(pow(one, other, 2**64))


def power(one: float, other: float) -> float:
    """Of doubles, as Java has it."""
    try:
        found = math.pow(one, other)
    except OverflowError:
        odd = other % 2 == 1
        return -math.inf if one < 0 and odd else math.inf
    except ValueError:
        return math.nan if one else math.inf
    return math.nan if abs(one) == 1 and (math.isinf(other) or other != other) else found


def negative(value: Value) -> Value:
    """The unary minus."""
    if isinstance(value, int):
        return wrapped(-value)
    if value is None or isinstance(value, float):
        return None if value is None else -value
    raise Fails


BINARY: dict[str, Binary] = {
    "+": _arithmetic(add, add, add),
    "-": _arithmetic(sub, sub, None),
    "*": _arithmetic(mul, mul, None),
    "/": _arithmetic(_divided, quotient, None),
    "%": _arithmetic(_rest, _double_rest, None),
    "^": _arithmetic(_power, power, None),
    **{sign: _compared(sign) for sign in _COMPARED},
}
