"""Druid's expressions, record by record: what their SQL can't say, and what it gives up on.

A tree becomes functions in one another, made once. Lists and texts may not grow without bounds, and functions as
arguments may be called so many times only: beyond that, the expression fails on the record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from ingestion.decode.druid_functions import FUNCTIONS
from ingestion.decode.druid_operators import BINARY
from ingestion.decode.druid_parser import (
    USE_SQL_HINT,
    Call,
    Field,
    Lambda,
    Literal,
    Node,
    NotSupported,
    unsupported_call,
)
from ingestion.decode.druid_strings import check_length
from ingestion.decode.druid_values import (
    Array,
    EvaluationFailed,
    Nested,
    Value,
    array_of,
    as_array,
    cast,
    checked_text,
    from_json,
    is_true,
    kind_of,
    to_json_value,
)
from ingestion.decode.field_uses import plain_fields
from ingestion.specs.schema.joda import split_pattern

_MAX_CALLS = 10_000
Names = dict[str, Value]
Evaluated = Callable[[Names], Value]
_MAPS = ("map", "cartesian_map")
_APPLIED = {"map": 1, "filter": 1, "any": 1, "all": 1, "fold": 2}


def check(name: str, arguments: tuple[Node, ...]) -> None:
    """Whether a call is taken at all. Raises ``NotSupported``."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise unsupported_call(name)
    if not function.min_arguments <= len(arguments) <= function.max_arguments:
        raise NotSupported(
            f"{name!r} takes {function.min_arguments} to {function.max_arguments} arguments, not {len(arguments)}"
        )
    _check_lambdas(name, arguments)
    for place, checked in (function.literal_checks or {}).items():
        if place >= len(arguments):
            continue
        written = arguments[place]
        if isinstance(written, Literal) and written.value is None and place > 1:
            continue
        if isinstance(written, Literal) and written.value is None and name in ("timestamp_parse", "timestamp_format"):
            continue
        if not (isinstance(written, Literal) and isinstance(written.value, str)):
            raise NotSupported(f"argument {place + 1} of {name!r} must be a text literal: {USE_SQL_HINT}")
        try:
            checked(written.value)
        except ValueError as error:
            raise NotSupported(f"argument {place + 1} of {name!r}: {error}") from None
    if name == "timestamp_format":
        _check_names_of_zones(arguments)


def _check_names_of_zones(arguments: tuple[Node, ...]) -> None:
    """What Java calls other zones than UTC is not known here."""
    written = [a.value for a in arguments[1:] if isinstance(a, Literal)]
    shows = bool(written) and any(run.startswith("z") for run, _ in split_pattern(str(written[0] or "")))
    if shows and written[1:] not in ([], [None], ["UTC"]):
        raise NotSupported(f"letter 'z' in argument 2 of 'timestamp_format' works only with UTC: {USE_SQL_HINT}")


def _check_lambdas(name: str, arguments: tuple[Node, ...]) -> None:
    applies = name in _APPLIED or name.startswith("cartesian_")
    if any(isinstance(a, Lambda) for a in arguments[applies:]):
        raise NotSupported(f"{name!r} takes no function as this argument")
    if not applies:
        return
    written, lists = arguments[0], len(arguments) - 1
    if not isinstance(written, Lambda):
        raise NotSupported(f"argument 1 of {name!r} must be a function such as (x) -> x + 1")
    if len(written.names) != _APPLIED.get(name, lists):
        raise NotSupported(f"the function in {name!r} must take {_APPLIED.get(name, lists)}, not {len(written.names)}")


class Evaluator:
    """A tree, ready to be evaluated."""

    def __init__(self, tree: Node, condition: bool) -> None:
        self._calls = 0
        self._compiled = self._compile(tree)
        self._condition = condition
        self.plain = plain_fields(tree) if condition else frozenset()

    def text(self, fields: dict[str, str | None], ms: int) -> str | None:
        """The result for a record's fields (JSON texts) as JSON text. Raises ``EvaluationFailed``."""
        self._calls = 0
        try:
            names = {
                n: None if t is None else from_json(json.loads(t, parse_constant=_reject_constant))
                for n, t in fields.items()
            }
            names["__time"] = ms
            if self._condition:
                return self._truth(names)
            value = self._compiled(names)
            return None if value is None else _json_text(to_json_value(value))
        except (RecursionError, ArithmeticError, MemoryError, ValueError):
            raise EvaluationFailed from None

    def _truth(self, names: Names) -> str | None:
        """Whether a condition is true.

        Where a plain value is meant, Druid looks at each value of a list, or at the list as one, by what it has seen
        in the field before: only what is true, or not, in both ways is known.
        """
        lists = {n: v for n in self.plain if isinstance(v := names.get(n), Array) and v.values}
        answer = _truth_word(self._compiled(names))
        if lists and self._evaluate_each(names, lists) != answer:
            raise EvaluationFailed
        return answer

    def _evaluate_each(self, names: Names, lists: Mapping[str, Array]) -> str | None:
        """Whether it is true of one of the values."""
        answers: set[str | None] = set()
        for chosen in product(*(v.values for v in lists.values())):
            self._calls += 1
            if self._calls > _MAX_CALLS:
                raise EvaluationFailed
            answers.add(_truth_word(self._compiled(names | dict(zip(lists, chosen, strict=True)))))
        return "true" if "true" in answers else None if None in answers else "false"

    def _compile(self, node: Node) -> Evaluated:
        if isinstance(node, Literal):
            constant = node.value
            return lambda names: constant
        if isinstance(node, Field):
            name = node.name
            return lambda names: names[name]
        if isinstance(node, Lambda):
            raise NotSupported("a function is not a value")
        return self._called(node)

    def _called(self, node: Call) -> Evaluated:
        if node.arguments and isinstance(node.arguments[0], Lambda):
            return self._applied(node, node.arguments[0])
        arguments = [self._compile(a) for a in node.arguments]
        lazy = _LAZY.get(node.name)
        if lazy is not None:
            return lazy(arguments)
        name = "unary -" if node.name == "-" and len(arguments) == 1 else node.name
        call = FUNCTIONS[name].call
        if call is None:
            raise NotSupported(f"argument 1 of {node.name!r} must be a function such as (x) -> x + 1")
        if len(arguments) == 1:
            (only,) = arguments
            return lambda names: call(only(names))
        if len(arguments) == 2:
            left, right = arguments
            return lambda names: call(left(names), right(names))
        return lambda names: call(*(a(names) for a in arguments))

    def _applied(self, node: Call, written: Lambda) -> Evaluated:
        body = self._compile(written.body)
        others = [self._compile(a) for a in node.arguments[1:]]

        def call(names: Names, values: Sequence[Value]) -> Value:
            self._calls += 1
            if self._calls > _MAX_CALLS:
                raise EvaluationFailed
            return body({**names, **dict(zip(written.names, values, strict=True))})

        apply = _map_with_texts if node.name in _MAPS and _may_return_field(written) else _APPLY[node.name]
        return lambda names: apply(lambda values: call(names, values), [o(names) for o in others])


def _truth_word(value: Value) -> str | None:
    if isinstance(value, Array | Nested):
        raise EvaluationFailed
    return "true" if is_true(value) else None if value is None else "false"


def _reject_constant(name: str) -> Any:
    raise ValueError(name)


def _json_text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationFailed
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    check_length(len(text))
    return checked_text(text)


def _and(arguments: list[Evaluated]) -> Evaluated:
    evaluate_left, evaluate_right = arguments

    def evaluate(names: Names) -> Value:
        left = evaluate_left(names)
        if left is not None and not is_true(left):
            return 0
        right = evaluate_right(names)
        if right is not None and not is_true(right):
            return 0
        return None if left is None or right is None else 1

    return evaluate


def _or(arguments: list[Evaluated]) -> Evaluated:
    evaluate_left, evaluate_right = arguments

    def evaluate(names: Names) -> Value:
        left = evaluate_left(names)
        if is_true(left):
            return 1
        right = evaluate_right(names)
        if is_true(right):
            return 1
        return None if left is None or right is None else 0

    return evaluate


def _coalesce(arguments: list[Evaluated]) -> Evaluated:
    return lambda names: next((v for a in arguments if (v := a(names)) is not None), None)


def _case_searched(arguments: list[Evaluated]) -> Evaluated:
    pairs = [*zip(arguments[:-1:2], arguments[1::2], strict=False)]
    last = arguments[-1] if len(arguments) % 2 else None

    def evaluate(names: Names) -> Value:
        for condition, value in pairs:
            if is_true(condition(names)):
                return value(names)
        return None if last is None else last(names)

    return evaluate


def _case_simple(arguments: list[Evaluated]) -> Evaluated:
    looked_at, *rest = arguments
    pairs = [*zip(rest[:-1:2], rest[1::2], strict=False)]
    last = rest[-1] if len(rest) % 2 else None

    def evaluate(names: Names) -> Value:
        value = looked_at(names)
        for same, result in pairs:
            if is_true(BINARY["=="](value, same(names))):
                return result(names)
        return None if last is None else last(names)

    return evaluate


_LAZY: dict[str, Callable[[list[Evaluated]], Evaluated]] = {
    "&&": _and,
    "||": _or,
    "nvl": _coalesce,
    "coalesce": _coalesce,
    "if": _case_searched,
    "case_searched": _case_searched,
    "case_simple": _case_simple,
}
Applied = Callable[[Sequence[Value]], Value]


def _values(value: Value) -> tuple[Value, ...] | None:
    array = as_array(value)
    return None if array is None else array.values


def _map(call: Applied, lists: list[Value]) -> Value:
    every = [_values(v) for v in lists]
    if any(v is None for v in every):
        return None
    mapped = [call(values) for values in product(*(v for v in every if v is not None))]
    if any(isinstance(v, Array) and len(v.values) == 1 for v in mapped):
        raise EvaluationFailed
    return array_of(mapped) if mapped or not lists or not isinstance(lists[0], Array) else Array(lists[0].element, ())


def _map_with_texts(call: Applied, lists: list[Value]) -> Value:
    """A null that a field holds is a text to Druid, and makes texts of the numbers beside it."""
    mapped = _map(call, lists)
    if isinstance(mapped, Array) and mapped.element != "STRING" and None in mapped.values:
        raise EvaluationFailed
    return mapped


def _may_return_field(written: Lambda) -> bool:
    """Whether a field of the record may be its result."""
    return any(
        _is_choice(node) and any(_is_foreign(a, written) for a in node.arguments) for node in _calls(written.body)
    )


def _is_choice(node: Call) -> bool:
    return node.name in _LAZY and node.name not in ("&&", "||")


def _is_foreign(node: Node, written: Lambda) -> bool:
    return isinstance(node, Field) and node.name not in written.names


def _calls(node: Node) -> Iterator[Call]:
    if isinstance(node, Lambda):
        yield from _calls(node.body)
    elif isinstance(node, Call):
        yield node
        for argument in node.arguments:
            yield from _calls(argument)


def _filter(call: Applied, lists: list[Value]) -> Value:
    array = as_array(lists[0])
    if array is None:
        return None
    kept = tuple(v for v in array.values if is_true(call((v,))))
    return Array(array.element, kept) if kept else None


def _any(call: Applied, lists: list[Value]) -> Value:
    return int(any(is_true(call((v,))) for v in _values(lists[0]) or ()))


def _all(call: Applied, lists: list[Value]) -> Value:
    values = _values(lists[0])
    return int(values is not None and all(is_true(call((v,))) for v in values))


def _fold(call: Applied, lists: list[Value]) -> Value:
    """What comes of it is of the first value's type, after each call, as in Druid."""
    *others, total = lists
    every = [_values(v) for v in others]
    if any(v is None for v in every):
        return None
    kind = None if isinstance(total, Array | Nested) else kind_of(total)
    for values in product(*(v for v in every if v is not None)):
        total = call((*values, total))
        if kind is not None and total is not None:
            total = cast(total, kind)
        if isinstance(total, str):
            check_length(len(total))
    return total


_APPLY: dict[str, Callable[[Applied, list[Value]], Value]] = {
    "map": _map,
    "cartesian_map": _map,
    "filter": _filter,
    "any": _any,
    "all": _all,
    "fold": _fold,
    "cartesian_fold": _fold,
}
