"""What values of jq are to each other, as jackson-jq has them: order, sums, texts, and what a record may cost.

A number is a long or a double; of a calculation with doubles what is whole becomes a long.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ingestion.decode.druid_values import MAX_LONG, MIN_LONG, EvaluationFailed, to_units, wrap_long

MAX_COST = 1_000_000  # steps and values of one record; a text is one for each 16 characters
_CHECK_EVERY = 1_000
CHARACTERS = 16
_RANKS = {type(None): 0, bool: 1, int: 3, float: 3, str: 4, list: 5, dict: 6}


class JqError(Exception):
    """jq's own error, which ``?`` and ``try`` end."""


class Budget:
    """How much a record may make. ``check`` is called now and then, and may raise."""

    def __init__(self, check: Callable[[], None], most: int = MAX_COST) -> None:
        self._check = check
        self._remaining = most
        self._next_check_at = most - _CHECK_EVERY

    def spend(self, count: int = 1) -> None:
        """Raises ``EvaluationFailed`` when it is too much."""
        self._remaining -= count
        if self._remaining <= self._next_check_at:
            self._next_check_at = self._remaining - _CHECK_EVERY
            self._check()
            if self._remaining < 0:
                raise EvaluationFailed

    def charge(self, value: Any) -> Any:
        """The value, with all that is in it paid for."""
        self.spend(1 + len(value) // CHARACTERS if isinstance(value, str) else 1)
        if isinstance(value, dict):
            for name, item in value.items():
                self.spend(len(name) // CHARACTERS)
                self.charge(item)
        elif isinstance(value, list):
            for item in value:
                self.charge(item)
        return value


def kind_of(value: Any) -> str:
    """The name of its type."""
    return ("null", "boolean", "", "number", "string", "array", "object")[_RANKS[type(value)]]


def children(value: Any) -> list[Any]:
    """What ``.[]`` makes of it."""
    if isinstance(value, dict | list):
        return list(value.values()) if isinstance(value, dict) else value
    raise JqError


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


def is_true(value: Any) -> bool:
    return value is not None and value is not False


def whole_or_double(value: float) -> int | float:
    """A long if it is whole."""
    if not math.isfinite(value):
        raise EvaluationFailed
    if value == 2.0**63:
        return MAX_LONG
    return int(value) if MIN_LONG <= value < 2.0**63 and value == int(value) else value


def compare(budget: Budget, left: Any, right: Any) -> int:
    """Below zero, zero or above it: null, false, true, numbers, texts, arrays, objects."""
    budget.spend()
    ranks = _RANKS[type(left)], _RANKS[type(right)]
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    if isinstance(left, list):
        return _compare_lists(budget, left, right)
    if isinstance(left, dict):
        names = [sorted(value, key=to_units) for value in (left, right)]
        order = _compare_lists(budget, *names)
        return order or _compare_lists(budget, *([v[n] for n in names[0]] for v in (left, right)))
    if isinstance(left, str):
        budget.spend((len(left) + len(right)) // CHARACTERS)
        left, right = to_units(left), to_units(right)
    elif is_number(left):
        left, right = float(left), float(right)
    return 0 if left is right or left == right else -1 if left < right else 1


def _compare_lists(budget: Budget, left: list[Any], right: list[Any]) -> int:
    for a, b in zip(left, right, strict=False):
        order = compare(budget, a, b)
        if order:
            return order
    return (len(left) > len(right)) - (len(left) < len(right))


def sort_key(budget: Budget) -> Callable[[Any], Any]:
    return functools.cmp_to_key(functools.partial(compare, budget))


def hash_ordered(members: dict[str, Any]) -> dict[str, Any]:
    """In the order of Java's HashMap, which an object has that a program makes."""
    size = 16
    while len(members) > size * 3 // 4:
        size *= 2
    return {name: members[name] for name in sorted(members, key=lambda name: _java_hash(name) % size)}


def _java_hash(name: str) -> int:
    java_hash = 0
    data = to_units(name)
    for place in range(0, len(data), 2):
        java_hash = (31 * java_hash + data[place] * 256 + data[place + 1]) % 2**32
    return java_hash ^ (java_hash >> 16)


def add(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    if is_number(left) and is_number(right):
        return _calculate(left, right, lambda a, b: a + b)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    if isinstance(left, dict) and isinstance(right, dict):
        return left | right
    raise JqError


def subtract(budget: Budget, left: Any, right: Any) -> Any:
    if is_number(left) and is_number(right):
        return _calculate(left, right, lambda a, b: a - b)
    if isinstance(left, list) and isinstance(right, list):
        return [value for value in left if all(compare(budget, value, away) for away in right)]
    raise JqError


def multiply(budget: Budget, left: Any, right: Any) -> Any:
    if is_number(left) and is_number(right):
        return _calculate(left, right, lambda a, b: a * b)
    if isinstance(left, str) and is_number(right):
        times = int(max(min(right, 1e9), 0))
        budget.spend(len(left) * times // CHARACTERS)
        return left * times if times else None
    if isinstance(left, dict) and isinstance(right, dict):
        return _merge_deep(left, right)
    raise JqError


def _merge_deep(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    merged_members = {
        n: _merge_deep(left[n], v) for n, v in right.items() if isinstance(v, dict) and isinstance(left.get(n), dict)
    }
    return left | right | merged_members


def divide(left: Any, right: Any) -> Any:
    if is_number(left) and is_number(right):
        if not right:
            raise JqError
        return whole_or_double(float(left) / float(right))
    if isinstance(left, str) and isinstance(right, str):
        return split(left, right)
    raise JqError


def remainder(dividend: Any, divisor: Any) -> int:
    if type(dividend) is not int or type(divisor) is not int or not divisor:
        raise JqError
    left = abs(dividend) % abs(divisor)
    return left if dividend >= 0 else -left


def _calculate(left: float, right: float, calculate: Callable[[Any, Any], Any]) -> int | float:
    if isinstance(left, int) and isinstance(right, int):
        return wrap_long(calculate(left, right))
    return whole_or_double(calculate(float(left), float(right)))


def split(text: str, by: str) -> list[str]:
    return text.split(by) if by else list(text)
