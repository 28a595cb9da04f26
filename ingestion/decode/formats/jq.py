"""What a jq program finds in a record: the first of its values, as in Druid, which makes all of them all the same.

A program that finds nothing, or an error, fails: there Druid's task fails. It fails too where a record would cost too
much, and where the value is NaN or infinite.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ingestion.decode.druid_values import Fails
from ingestion.decode.formats import jq_values as values
from ingestion.decode.formats.jq_functions import FUNCTIONS, Function, every
from ingestion.decode.formats.jq_places import PLACES
from ingestion.decode.formats.jq_values import Budget, JqError
from ingestion.decode.jackson_texts import json_text
from ingestion.decode.java_texts import whole_number
from ingestion.specs.formats.jq import Node

_UNREADABLE = "holds NaN or Infinity, or is nested too deep for jq"


def loaded(text: str) -> dict[str, Any] | None:
    """The record; None where the text is no JSON object. Raises ``Fails`` where it holds NaN, or is nested too deep."""
    try:
        record = json.loads(text, parse_int=whole_number, parse_constant=_no_number)
    except ValueError:
        return None
    except RecursionError:
        raise Fails(_UNREADABLE) from None
    return record if isinstance(record, dict) else None


def found(record: dict[str, Any], program: Node, check: Callable[[], None]) -> str:
    """The JSON text of the first value that it finds. Raises ``Fails``."""
    try:
        told = Run(Budget(check)).of(program, record)
        if not told:
            raise Fails
        text = json.dumps(told[0], ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (JqError, ValueError, RecursionError):  # what is NaN, or half of a character, is a ValueError
        raise Fails from None
    return text


def _no_number(_: str) -> Any:
    raise Fails(_UNREADABLE)


class Run:
    """A program on one record."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def of(self, node: Node, value: Any) -> list[Any]:
        """All values that this part of the program makes of a value. Raises ``JqError``, ``Fails``."""
        self.budget.spend()
        return list(_KINDS[node.kind](self, node, value))

    def _steps(self, node: Node, value: Any) -> Iterator[Any]:
        there = self.of(node.parts[0], value)
        for step in node.parts[1:]:
            there = [inner for one in there for inner in self._step(step, one, value)]
        yield from there

    def _step(self, step: Node, one: Any, value: Any) -> list[Any]:
        self.budget.spend()
        if step.kind != "try":
            return list(_STEPS[step.kind](self, step, one, value))
        try:
            return self._step(step.parts[0], one, value)
        except JqError:
            return []

    def _indexed(self, step: Node, one: Any, value: Any) -> Iterator[Any]:
        for index in self.of(step.parts[0], value):
            yield _at(one, index)

    def _pipe(self, node: Node, value: Any) -> Iterator[Any]:
        there = [value]
        for part in node.parts:
            there = [inner for one in there for inner in self.of(part, one)]
        yield from there

    def _comma(self, node: Node, value: Any) -> Iterator[Any]:
        for part in node.parts:
            yield from self.of(part, value)

    def _operator(self, node: Node, value: Any) -> Iterator[Any]:
        left, right = node.parts
        ones = self.of(left, value)
        if node.value == "//":
            yield from [one for one in ones if values.truth(one)] or self.of(right, value)
            return
        for one in ones:
            if node.value in ("and", "or") and values.truth(one) == (node.value == "or"):
                yield node.value == "or"
                continue
            for other in self.of(right, value):
                yield self._reckoned(node.value, one, other)

    def _reckoned(self, sign: str, one: Any, other: Any) -> Any:
        if sign in ("and", "or"):
            return values.truth(other)
        if sign in _COMPARED:
            return _COMPARED[sign](values.compared(self.budget, one, other))
        return self.budget.made(_RECKONED[sign](self.budget, one, other))

    def _minus(self, node: Node, value: Any) -> Iterator[Any]:
        for one in self.of(node.parts[0], value):
            if not values.is_number(one):
                raise JqError
            yield values.of_double(-float(one))

    def _array(self, node: Node, value: Any) -> Iterator[Any]:
        yield self.budget.made([inner for part in node.parts for inner in self.of(part, value)])

    def _object(self, node: Node, value: Any) -> Iterator[Any]:
        made: list[dict[str, Any]] = [{}]
        for key, member in zip(node.parts[::2], node.parts[1::2], strict=True):
            names, inner = self.of(key, value), self.of(member, value)
            if not all(isinstance(name, str) for name in names):
                raise JqError
            self.budget.spend(len(made) * len(names) * len(inner) * (len(node.parts) + 1))
            made = [one | {name: v} for one in made for name in names for v in inner]
        yield from (self.budget.made(values.hashed(one)) for one in made)

    def _text(self, node: Node, value: Any) -> Iterator[Any]:
        """With several values in a hole Druid's library makes texts that nobody would expect."""
        parts = [self.of(part, value) for part in node.parts]
        if any(len(part) != 1 for part in parts):
            raise Fails
        texts = [part if isinstance(part, str) else json_text(part) for [part] in parts]
        yield self.budget.made("".join(texts))

    def _if(self, node: Node, value: Any) -> Iterator[Any]:
        condition, then, otherwise = node.parts
        for one in self.of(condition, value):
            yield from self.of(then if values.truth(one) else otherwise, value)

    def _try(self, node: Node, value: Any) -> list[Any]:
        try:
            return self.of(node.parts[0], value)
        except JqError:
            return []

    def _call(self, node: Node, value: Any) -> list[Any]:
        return _CALLED[node.value, len(node.parts)](self, value, *node.parts)


def _at(value: Any, index: Any) -> Any:
    if isinstance(index, str):
        return _named(value, index)
    if type(index) is not int or not (value is None or isinstance(value, list)):
        raise JqError
    return value[index] if value and -len(value) <= index < len(value) else None


def _named(value: Any, name: str) -> Any:
    if value is None or isinstance(value, dict):
        return None if value is None else value.get(name)
    raise JqError


def _sliced(value: Any, ends: tuple[int | None, int | None]) -> Any:
    if value is None or isinstance(value, list | str):
        return None if value is None else value[slice(*ends)]
    raise JqError


_STEPS: dict[str, Callable[[Run, Node, Any, Any], Any]] = {
    "name": lambda run, step, one, value: [_named(one, step.value)],
    "index": Run._indexed,
    "slice": lambda run, step, one, value: [run.budget.made(_sliced(one, step.value))],
    "values": lambda run, step, one, value: values.inner(one),
}
_CALLED: dict[tuple[str, int], Function] = {
    **FUNCTIONS,
    **PLACES,
    ("nth", 1): lambda run, value, node: [_at(value, place) for place in run.of(node, value)],
}
_KINDS: dict[str, Callable[[Run, Node, Any], Any]] = {
    "this": lambda run, node, value: [value],
    "every": lambda run, node, value: every(run.budget, value),
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
_COMPARED: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_RECKONED: dict[str, Callable[[Budget, Any, Any], Any]] = {
    "+": lambda budget, one, other: values.added(one, other),
    "-": values.taken_off,
    "*": values.multiplied,
    "/": lambda budget, one, other: values.divided(one, other),
    "%": lambda budget, one, other: values.remainder(one, other),
}
