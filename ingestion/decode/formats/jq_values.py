"""What values of jq are to each other, as jackson-jq has them: order, sums, texts, and what a record may cost.

A number is a long or a double; of a calculation with doubles what is whole becomes a long.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ingestion.decode.druid_values import GREATEST_LONG, LEAST_LONG, Fails, units, wrapped

MOST_MADE = 1_000_000  # steps and values of one record; a text is one for each 16 characters
_LOOK_EVERY = 1_000
CHARACTERS = 16
_RANKS = {type(None): 0, bool: 1, int: 3, float: 3, str: 4, list: 5, dict: 6}


class JqError(Exception):
    """jq's own error, which ``?`` and ``try`` end."""


class Budget:
    """How much a record may make. ``check`` is called now and then, and may raise."""

    def __init__(self, check: Callable[[], None], most: int = MOST_MADE) -> None:
        self._check = check
        self._left = most
        self._look_at = most - _LOOK_EVERY

    def spend(self, count: int = 1) -> None:
        """Raises ``Fails`` when it is too much."""
        self._left -= count
        if self._left <= self._look_at:
            self._look_at = self._left - _LOOK_EVERY
            self._check()
            if self._left < 0:
                raise Fails

    def made(self, value: Any) -> Any:
        """The value, with all that is in it paid for."""
        self.spend(1 + len(value) // CHARACTERS if isinstance(value, str) else 1)
        if isinstance(value, dict):
            for name, held in value.items():
                self.spend(len(name) // CHARACTERS)
                self.made(held)
        elif isinstance(value, list):
            for held in value:
                self.made(held)
        return value


def kind_of(value: Any) -> str:
    """The name of its type."""
    return ("null", "boolean", "", "number", "string", "array", "object")[_RANKS[type(value)]]


def inner(value: Any) -> list[Any]:
    """What ``.[]`` makes of it."""
    if isinstance(value, dict | list):
        return list(value.values()) if isinstance(value, dict) else value
    raise JqError


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


def truth(value: Any) -> bool:
    return value is not None and value is not False


def of_double(value: float) -> int | float:
    """A long if it is whole."""
    if not math.isfinite(value):
        raise Fails
    if value == 2.0**63:
        return GREATEST_LONG
    return int(value) if LEAST_LONG <= value < 2.0**63 and value == int(value) else value


def compared(budget: Budget, one: Any, other: Any) -> int:
    """Below zero, zero or above it: null, false, true, numbers, texts, arrays, objects."""
    budget.spend()
    ranks = _RANKS[type(one)], _RANKS[type(other)]
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    if isinstance(one, list):
        return _compared_lists(budget, one, other)
    if isinstance(one, dict):
        names = [sorted(value, key=units) for value in (one, other)]
        order = _compared_lists(budget, *names)
        return order or _compared_lists(budget, *([v[n] for n in names[0]] for v in (one, other)))
    if isinstance(one, str):
        budget.spend((len(one) + len(other)) // CHARACTERS)
        one, other = units(one), units(other)
    elif is_number(one):
        one, other = float(one), float(other)
    return 0 if one is other or one == other else -1 if one < other else 1


def _compared_lists(budget: Budget, one: list[Any], other: list[Any]) -> int:
    for a, b in zip(one, other, strict=False):
        order = compared(budget, a, b)
        if order:
            return order
    return (len(one) > len(other)) - (len(one) < len(other))


def sort_key(budget: Budget) -> Callable[[Any], Any]:
    return functools.cmp_to_key(functools.partial(compared, budget))


def hashed(members: dict[str, Any]) -> dict[str, Any]:
    """In the order of Java's HashMap, which an object has that a program makes."""
    size = 16
    while len(members) > size * 3 // 4:
        size *= 2
    return {name: members[name] for name in sorted(members, key=lambda name: _spread(name) % size)}


def _spread(name: str) -> int:
    found = 0
    data = units(name)
    for place in range(0, len(data), 2):
        found = (31 * found + data[place] * 256 + data[place + 1]) % 2**32
    return found ^ (found >> 16)


def added(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if is_number(one) and is_number(other):
        return _of_numbers(one, other, lambda a, b: a + b)
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        return one + other
    if isinstance(one, dict) and isinstance(other, dict):
        return one | other
    raise JqError


def taken_off(budget: Budget, one: Any, other: Any) -> Any:
    if is_number(one) and is_number(other):
        return _of_numbers(one, other, lambda a, b: a - b)
    if isinstance(one, list) and isinstance(other, list):
        return [value for value in one if all(compared(budget, value, away) for away in other)]
    raise JqError


def multiplied(budget: Budget, one: Any, other: Any) -> Any:
    if is_number(one) and is_number(other):
        return _of_numbers(one, other, lambda a, b: a * b)
    if isinstance(one, str) and is_number(other):
        times = int(max(min(other, 1e9), 0))
        budget.spend(len(one) * times // CHARACTERS)
        return one * times if times else None
    if isinstance(one, dict) and isinstance(other, dict):
        return _merged(one, other)
    raise JqError


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {n: _merged(one[n], v) for n, v in other.items() if isinstance(v, dict) and isinstance(one.get(n), dict)}
    return one | other | both


def divided(one: Any, other: Any) -> Any:
    if is_number(one) and is_number(other):
        if not other:
            raise JqError
        return of_double(float(one) / float(other))
    if isinstance(one, str) and isinstance(other, str):
        return split(one, other)
    raise JqError


def remainder(one: Any, other: Any) -> int:
    if type(one) is not int or type(other) is not int or not other:
        raise JqError
    left = abs(one) % abs(other)
    return left if one >= 0 else -left


def _of_numbers(one: float, other: float, reckoned: Callable[[Any, Any], Any]) -> int | float:
    if isinstance(one, int) and isinstance(other, int):
        return wrapped(reckoned(one, other))
    return of_double(reckoned(float(one), float(other)))


def split(text: str, by: str) -> list[str]:
    return text.split(by) if by else list(text)
