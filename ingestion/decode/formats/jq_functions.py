"""The functions of jq that are taken, by name and number of arguments, as jackson-jq has them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ingestion.decode.druid_values import EvaluationFailed, to_units
from ingestion.decode.formats import jq_values as values
from ingestion.decode.formats.jq_values import Budget, JqError, children, compare, is_number, is_true, kind_of
from ingestion.decode.jackson_texts import json_text
from ingestion.specs.formats.jq import Node

_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[fFdD]?", re.ASCII)
_KINDS_OF_KINDS = {
    "nulls": ("null",),
    "numbers": ("number",),
    "strings": ("string",),
    "booleans": ("boolean",),
    "arrays": ("array",),
    "objects": ("object",),
    "values": ("boolean", "number", "string", "array", "object"),
    "scalars": ("null", "boolean", "number", "string"),
    "iterables": ("array", "object"),
}


class Evaluator(Protocol):
    """What makes the values of arguments."""

    budget: Budget

    def evaluate(self, node: Node, value: Any) -> list[Any]: ...


Function = Callable[..., list[Any]]


def walk(budget: Budget, value: Any) -> Iterator[Any]:
    """The value, and all that is in it."""
    budget.spend()
    yield value
    if isinstance(value, dict | list):
        for item in children(value):
            yield from walk(budget, item)


def _require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JqError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise JqError
    return value


def _length(value: Any) -> Any:
    if isinstance(value, bool):
        raise JqError
    if value is None:
        return 0
    return values.whole_or_double(abs(float(value))) if is_number(value) else len(value)


def _keys(value: Any) -> list[Any]:
    if isinstance(value, list):
        return list(range(len(value)))
    if isinstance(value, dict):
        return sorted(value, key=to_units)
    raise JqError


def _keys_unsorted(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else _keys(value)


def _add(run: Evaluator, value: Any) -> Any:
    total = None
    for item in children(value):
        total = run.budget.charge(values.add(total, item))
    return total


def _flatten(run: Evaluator, value: Any, depth: float) -> list[Any]:
    if depth < 0:
        raise JqError
    flattened: list[Any] = []
    for item in children(value):
        run.budget.spend()
        flattened += _flatten(run, item, depth - 1) if isinstance(item, list) and depth > 0 else [item]
    return flattened


def _flatten_to(run: Evaluator, value: Any, node: Node) -> list[Any]:
    depths = run.evaluate(node, value)
    if not all(type(depth) is int for depth in depths):
        raise EvaluationFailed
    return [_flatten(run, value, depth) for depth in depths]


def _tonumber(value: Any) -> Any:
    if is_number(value):
        return value
    text = _text(value).strip("".join(map(chr, range(33))))
    if not _DECIMAL.fullmatch(text):
        raise EvaluationFailed  # Java's own error, which a program can't catch
    return values.whole_or_double(float(text.rstrip("fFdD")))


def _tostring(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _fromjson(value: Any) -> Any:
    text = _text(value).strip(" \t\r\n")
    if not text:
        return None
    try:
        parsed, end = json.JSONDecoder(parse_int=_long, parse_constant=_reject_constant).raw_decode(text)
    except ValueError:
        raise JqError from None
    if text[end : end + 1].strip(" \t\r\n"):
        raise EvaluationFailed
    return parsed


def _long(digits: str) -> int:
    if len(digits) > 18:
        raise EvaluationFailed
    return int(digits)


def _reject_constant(_: str) -> Any:
    raise ValueError


def _apply_to_double(value: Any, function: Callable[[float], float]) -> float:
    if not is_number(value):
        raise JqError
    return function(float(value))


def _sqrt(value: float) -> float:
    if value < 0:
        raise EvaluationFailed
    return math.sqrt(value)


def _floor(value: float) -> float:
    return math.copysign(float(math.floor(value)), value)


def _to_entries(value: Any) -> list[Any]:
    pairs = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else None
    if pairs is None:
        raise JqError
    return [{"key": key, "value": inner_} for key, inner_ in pairs]


def _from_entries(value: Any) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for entry in _require_list(value):
        if not isinstance(entry, dict):
            raise JqError
        key = next((entry[name] for name in ("key", "Key", "name", "Name") if name in entry), None)
        members[_text(key)] = entry["value"] if "value" in entry else entry.get("Value")
    return members


def _ascii(change: Callable[[str], str]) -> Callable[[Any], str]:
    return lambda value: re.sub("[A-Za-z]+", lambda match: change(match[0]), _text(value))


def _map(run: Evaluator, value: Any, node: Node) -> list[Any]:
    return [run.budget.charge([mapped for item in children(value) for mapped in run.evaluate(node, item)])]


def _select(run: Evaluator, value: Any, node: Node) -> list[Any]:
    return [value for verdict in run.evaluate(node, value) if is_true(verdict)]


def _has(value: Any, key: Any) -> bool:
    if isinstance(value, dict) and isinstance(key, str):
        return key in value
    if isinstance(value, list) and type(key) is int:
        return 0 <= key < len(value)
    raise JqError


def _contains(budget: Budget, value: Any, searched: Any) -> bool:
    if kind_of(value) != kind_of(searched):
        raise JqError
    if isinstance(value, dict):
        return all(
            name in value and kind_of(value[name]) == kind_of(item) and _contains(budget, value[name], item)
            for name, item in searched.items()
        )
    if isinstance(value, list):
        return all(any(kind_of(v) == kind_of(w) and _contains(budget, v, w) for v in value) for w in searched)
    if isinstance(value, str):
        budget.spend(len(value) // values.CHARACTERS)
        return searched in value
    return compare(budget, value, searched) == 0


def _join(run: Evaluator, value: Any, by: Any) -> str:
    joined = None
    for item in children(value) if isinstance(value, dict | list) else ():
        text = "" if item is None else json_text(item) if isinstance(item, bool | int | float) else item
        before = "" if joined is None else values.add(joined, by)
        joined = run.budget.charge(values.add(before, text))
    return joined or ""


def _starts(value: Any, prefix: Any) -> bool:
    return _text(value).startswith(_text(prefix))


def _ends(value: Any, suffix: Any) -> bool:
    return _text(value).endswith(_text(suffix))


def _sort_with_keys(run: Evaluator, value: Any, node: Node) -> list[tuple[Any, Any]]:
    """The values with what they are sorted by, sorted."""
    keyed = [(run.evaluate(node, item), item) for item in _require_list(value)]
    key = values.sort_key(run.budget)
    return sorted(keyed, key=lambda pair: key(pair[0]))


def _group_by(run: Evaluator, value: Any, node: Node) -> list[list[Any]]:
    groups: list[list[Any]] = []
    last: Any = None
    for key, item in _sort_with_keys(run, value, node):
        if groups and compare(run.budget, last, key) == 0:
            groups[-1].append(item)
        else:
            groups.append([item])
        last = key
    return groups


def _unique(run: Evaluator, value: Any) -> list[Any]:
    unique: list[Any] = []
    for item in sorted(_require_list(value), key=values.sort_key(run.budget)):
        if not unique or compare(run.budget, unique[-1], item):
            unique.append(item)
    return unique


def _least(run: Evaluator, value: Any) -> Any:
    return min(_require_list(value), key=values.sort_key(run.budget), default=None)


def _greatest(run: Evaluator, value: Any) -> Any:
    """The last of equal ones."""
    return max(reversed(_require_list(value)), key=values.sort_key(run.budget), default=None)


def _least_by(run: Evaluator, value: Any, node: Node) -> Any:
    keyed = _sort_with_keys(run, value, node)
    return keyed[0][1] if keyed else None


def _greatest_by(run: Evaluator, value: Any, node: Node) -> Any:
    keyed = _sort_with_keys(run, value, node)
    return keyed[-1][1] if keyed else None


def _truths(run: Evaluator, value: Any, *nodes: Node) -> list[bool]:
    """``any`` and ``all``: of the values in it, of what a program makes of them, or of what another one makes."""
    if len(nodes) == 2:
        return [is_true(verdict) for item in run.evaluate(nodes[0], value) for verdict in run.evaluate(nodes[1], item)]
    verdicts = [verdict for item in children(value) for verdict in (run.evaluate(nodes[0], item) if nodes else [item])]
    return [is_true(verdict) for verdict in verdicts]


def _last_of(run: Evaluator, value: Any, node: Node) -> list[Any]:
    results = run.evaluate(node, value)
    return results[-1:] or [None]


def _first_of(run: Evaluator, value: Any, node: Node) -> list[Any]:
    return run.evaluate(node, value)[:1]


def _element_getter(place: int) -> Callable[[Any], Any]:
    def end(value: Any) -> Any:
        return _require_list(value)[place] if value is not None and _require_list(value) else None

    return end


def _value_function(function: Callable[[Any], Any]) -> Function:
    return lambda run, value: [run.budget.charge(function(value))]


def _run_function(function: Callable[..., Any]) -> Function:
    return lambda run, value, *nodes: [run.budget.charge(function(run, value, *nodes))]


def _argument_function(function: Callable[[Evaluator, Any, Any], Any]) -> Function:
    """Of every value that the argument has."""
    return lambda run, value, node: [
        run.budget.charge(function(run, value, argument)) for argument in run.evaluate(node, value)
    ]


def _kind_filter(kinds: tuple[str, ...]) -> Function:
    return lambda run, value: [value] if kind_of(value) in kinds else []


FUNCTIONS: dict[tuple[str, int], Function] = {
    **{(name, 0): _kind_filter(kinds) for name, kinds in _KINDS_OF_KINDS.items()},
    ("length", 0): _value_function(_length),
    ("keys", 0): _value_function(_keys),
    ("keys_unsorted", 0): _value_function(_keys_unsorted),
    ("add", 0): _run_function(_add),
    ("any", 0): _run_function(lambda run, value: any(_truths(run, value))),
    ("all", 0): _run_function(lambda run, value: all(_truths(run, value))),
    ("any", 1): _run_function(lambda run, value, node: any(_truths(run, value, node))),
    ("all", 1): _run_function(lambda run, value, node: all(_truths(run, value, node))),
    ("any", 2): _run_function(lambda run, value, item, other: any(_truths(run, value, item, other))),
    ("all", 2): _run_function(lambda run, value, item, other: all(_truths(run, value, item, other))),
    ("min", 0): _run_function(_least),
    ("max", 0): _run_function(_greatest),
    ("min_by", 1): _run_function(_least_by),
    ("max_by", 1): _run_function(_greatest_by),
    ("sort", 0): _run_function(lambda run, value: sorted(_require_list(value), key=values.sort_key(run.budget))),
    ("sort_by", 1): _run_function(lambda run, value, node: [item for _, item in _sort_with_keys(run, value, node)]),
    ("group_by", 1): _run_function(_group_by),
    ("unique", 0): _run_function(_unique),
    ("unique_by", 1): _run_function(lambda run, value, node: [group[0] for group in _group_by(run, value, node)]),
    ("reverse", 0): _value_function(lambda value: _require_list(value)[::-1]),
    ("flatten", 0): _run_function(lambda run, value: _flatten(run, value, math.inf)),
    ("flatten", 1): _flatten_to,
    ("floor", 0): _value_function(lambda value: _apply_to_double(value, _floor)),
    ("sqrt", 0): _value_function(lambda value: _apply_to_double(value, _sqrt)),
    ("tostring", 0): _value_function(_tostring),
    ("tonumber", 0): _value_function(_tonumber),
    ("tojson", 0): _value_function(json_text),
    ("fromjson", 0): _value_function(_fromjson),
    ("type", 0): _value_function(kind_of),
    ("not", 0): _value_function(lambda value: not is_true(value)),
    ("empty", 0): lambda run, value: [],
    ("first", 0): _value_function(_element_getter(0)),
    ("last", 0): _value_function(_element_getter(-1)),
    ("first", 1): _first_of,
    ("last", 1): _last_of,
    ("to_entries", 0): _value_function(_to_entries),
    ("from_entries", 0): _value_function(_from_entries),
    ("with_entries", 1): lambda run, value, node: [
        run.budget.charge(_from_entries(_map(run, run.budget.charge(_to_entries(value)), node)[0]))
    ],
    ("ascii_downcase", 0): _value_function(_ascii(str.lower)),
    ("ascii_upcase", 0): _value_function(_ascii(str.upper)),
    ("map", 1): _map,
    ("select", 1): _select,
    ("has", 1): _argument_function(lambda run, value, argument: _has(value, argument)),
    ("contains", 1): _argument_function(lambda run, value, argument: _contains(run.budget, value, argument)),
    ("inside", 1): _argument_function(lambda run, value, argument: _contains(run.budget, argument, value)),
    ("join", 1): _argument_function(_join),
    ("split", 1): _argument_function(lambda run, value, argument: values.split(_text(value), _text(argument))),
    ("ltrimstr", 1): _argument_function(lambda run, value, argument: _text(value).removeprefix(_text(argument))),
    ("rtrimstr", 1): _argument_function(lambda run, value, argument: _text(value).removesuffix(_text(argument))),
    ("startswith", 1): _argument_function(lambda run, value, argument: _starts(value, argument)),
    ("endswith", 1): _argument_function(lambda run, value, argument: _ends(value, argument)),
}
