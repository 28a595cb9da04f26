"""What a jq program finds in a record: the first of its values, as in Druid, which makes all of them all the same.

A program that finds nothing, or an error, fails: there Druid's task fails. It fails too where a record would cost too
much, and where the value is NaN or infinite.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.formats import jq_values as values
from ingestion.decode.formats.jq_functions import FUNCTIONS, Function, walk
from ingestion.decode.formats.jq_paths import INDEX_FUNCTIONS
from ingestion.decode.formats.jq_values import Budget, JqError
from ingestion.decode.jackson_texts import json_text
from ingestion.decode.java_texts import long_or_double
from ingestion.specs.formats.jq import Node

_UNREADABLE = "has NaN or Infinity, or is nested too deep for jq"


def load_record(text: str) -> dict[str, Any] | None:
    """The record; None where the text is no JSON object. Raises ``EvaluationFailed``: it holds NaN, or is too deep."""
    try:
        record = json.loads(text, parse_int=long_or_double, parse_constant=_reject_constant)
    except ValueError:
        return None
    except RecursionError:
        raise EvaluationFailed(_UNREADABLE) from None
    return record if isinstance(record, dict) else None


def first_value(record: dict[str, Any], program: Node, check: Callable[[], None]) -> str:
    """The JSON text of the first value that it finds. Raises ``EvaluationFailed``."""
    try:
        results = Run(Budget(check)).evaluate(program, record)
        if not results:
            raise EvaluationFailed
        text = json.dumps(results[0], ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (JqError, ValueError, RecursionError):  # what is NaN, or half of a character, is a ValueError
        raise EvaluationFailed from None
    return text


def _reject_constant(_: str) -> Any:
    raise EvaluationFailed(_UNREADABLE)


class Run:
    """A program on one record."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def evaluate(self, node: Node, value: Any) -> list[Any]:
        """All values that this part of the program makes of a value. Raises ``JqError``, ``EvaluationFailed``."""
        self.budget.spend()
        return list(_KINDS[node.kind](self, node, value))

    def _steps(self, node: Node, value: Any) -> Iterator[Any]:
        current = self.evaluate(node.parts[0], value)
        for step in node.parts[1:]:
            current = [inner for item in current for inner in self._step(step, item, value)]
        yield from current

    def _step(self, step: Node, item: Any, value: Any) -> list[Any]:
        self.budget.spend()
        if step.kind != "try":
            return list(_STEPS[step.kind](self, step, item, value))
        try:
            return self._step(step.parts[0], item, value)
        except JqError:
            return []

    def _indexed(self, step: Node, item: Any, value: Any) -> Iterator[Any]:
        for index in self.evaluate(step.parts[0], value):
            yield _element_at(item, index)

    def _pipe(self, node: Node, value: Any) -> Iterator[Any]:
        current = [value]
        for part in node.parts:
            current = [inner for item in current for inner in self.evaluate(part, item)]
        yield from current

    def _comma(self, node: Node, value: Any) -> Iterator[Any]:
        for part in node.parts:
            yield from self.evaluate(part, value)

    def _operator(self, node: Node, value: Any) -> Iterator[Any]:
        left, right = node.parts
        items = self.evaluate(left, value)
        if node.value == "//":
            yield from [item for item in items if values.is_true(item)] or self.evaluate(right, value)
            return
        for item in items:
            if node.value in ("and", "or") and values.is_true(item) == (node.value == "or"):
                yield node.value == "or"
                continue
            for other in self.evaluate(right, value):
                yield self._calculate(node.value, item, other)

    def _calculate(self, sign: str, left: Any, right: Any) -> Any:
        if sign in ("and", "or"):
            return values.is_true(right)
        if sign in _COMPARISONS:
            return _COMPARISONS[sign](values.compare(self.budget, left, right))
        return self.budget.charge(_ARITHMETIC[sign](self.budget, left, right))

    def _minus(self, node: Node, value: Any) -> Iterator[Any]:
        for item in self.evaluate(node.parts[0], value):
            if not values.is_number(item):
                raise JqError
            yield values.whole_or_double(-float(item))

    def _array(self, node: Node, value: Any) -> Iterator[Any]:
        yield self.budget.charge([inner for part in node.parts for inner in self.evaluate(part, value)])

    def _object(self, node: Node, value: Any) -> Iterator[Any]:
        objects: list[dict[str, Any]] = [{}]
        for key, member in zip(node.parts[::2], node.parts[1::2], strict=True):
            names, inner = self.evaluate(key, value), self.evaluate(member, value)
            if not all(isinstance(name, str) for name in names):
                raise JqError
            self.budget.spend(len(objects) * len(names) * len(inner) * (len(node.parts) + 1))
            objects = [partial_object | {name: v} for partial_object in objects for name in names for v in inner]
        yield from (self.budget.charge(values.hash_ordered(partial_object)) for partial_object in objects)

    def _text(self, node: Node, value: Any) -> Iterator[Any]:
        """With several values in a hole Druid's library makes texts that nobody would expect."""
        parts = [self.evaluate(part, value) for part in node.parts]
        if any(len(part) != 1 for part in parts):
            raise EvaluationFailed
        texts = [part if isinstance(part, str) else json_text(part) for [part] in parts]
        yield self.budget.charge("".join(texts))

    def _if(self, node: Node, value: Any) -> Iterator[Any]:
        condition, then, otherwise = node.parts
        for item in self.evaluate(condition, value):
            yield from self.evaluate(then if values.is_true(item) else otherwise, value)

    def _try(self, node: Node, value: Any) -> list[Any]:
        try:
            return self.evaluate(node.parts[0], value)
        except JqError:
            return []

    def _call(self, node: Node, value: Any) -> list[Any]:
        return _CALLS[node.value, len(node.parts)](self, value, *node.parts)


def _element_at(value: Any, index: Any) -> Any:
    if isinstance(index, str):
        return _member(value, index)
    if type(index) is not int or not (value is None or isinstance(value, list)):
        raise JqError
    return value[index] if value and -len(value) <= index < len(value) else None


def _member(value: Any, name: str) -> Any:
    if value is None or isinstance(value, dict):
        return None if value is None else value.get(name)
    raise JqError


def _slice(value: Any, ends: tuple[int | None, int | None]) -> Any:
    if value is None or isinstance(value, list | str):
        return None if value is None else value[slice(*ends)]
    raise JqError


_STEPS: dict[str, Callable[[Run, Node, Any, Any], Any]] = {
    "name": lambda run, step, item, value: [_member(item, step.value)],
    "index": Run._indexed,
    "slice": lambda run, step, item, value: [run.budget.charge(_slice(item, step.value))],
    "values": lambda run, step, item, value: values.children(item),
}
_CALLS: dict[tuple[str, int], Function] = {
    **FUNCTIONS,
    **INDEX_FUNCTIONS,
    ("nth", 1): lambda run, value, node: [_element_at(value, place) for place in run.evaluate(node, value)],
}
_KINDS: dict[str, Callable[[Run, Node, Any], Any]] = {
    "this": lambda run, node, value: [value],
    "every": lambda run, node, value: walk(run.budget, value),
    "literal": lambda run, node, value: [node.value],
    "text": Run._text,
    "array": Run._array,
    "object": Run._object,
    "steps": Run._steps,
    "pipe": Run._pipe,
    "comma": Run._comma,
    "operator": Run._operator,
    "minus": Run._minus,
    "if": Run._if,
    "try": Run._try,
    "call": Run._call,
}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_ARITHMETIC: dict[str, Callable[[Budget, Any, Any], Any]] = {
    "+": lambda budget, item, other: values.add(item, other),
    "-": values.subtract,
    "*": values.multiply,
    "/": lambda budget, item, other: values.divide(item, other),
    "%": lambda budget, item, other: values.remainder(item, other),
}
