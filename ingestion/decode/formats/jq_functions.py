"""The functions of jq that are taken, by name and number of arguments, as jackson-jq has them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ingestion.decode.druid_values import Fails, units
from ingestion.decode.formats import jq_values as values
from ingestion.decode.formats.jq_values import Budget, JqError, compared, inner, is_number, kind_of, truth
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

    def of(self, node: Node, value: Any) -> list[Any]: ...


Function = Callable[..., list[Any]]


def every(budget: Budget, value: Any) -> Iterator[Any]:
    """The value, and all that is in it."""
    budget.spend()
    yield value
    if isinstance(value, dict | list):
        for one in inner(value):
            yield from every(budget, one)


def _listed(value: Any) -> list[Any]:
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
    return values.of_double(abs(float(value))) if is_number(value) else len(value)


def _keys(value: Any) -> list[Any]:
    if isinstance(value, list):
        return list(range(len(value)))
    if isinstance(value, dict):
        return sorted(value, key=units)
    raise JqError


def _keys_unsorted(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else _keys(value)


def _add(run: Evaluator, value: Any) -> Any:
    total = None
    for one in inner(value):
        total = run.budget.made(values.added(total, one))
    return total


def _flat(run: Evaluator, value: Any, depth: float) -> list[Any]:
    if depth < 0:
        raise JqError
    found: list[Any] = []
    for one in inner(value):
        run.budget.spend()
        found += _flat(run, one, depth - 1) if isinstance(one, list) and depth > 0 else [one]
    return found


def _flatten_to(run: Evaluator, value: Any, node: Node) -> list[Any]:
    depths = run.of(node, value)
    if not all(type(depth) is int for depth in depths):
        raise Fails
    return [_flat(run, value, depth) for depth in depths]


def _tonumber(value: Any) -> Any:
    if is_number(value):
        return value
    text = _text(value).strip("".join(map(chr, range(33))))
    if not _DECIMAL.fullmatch(text):
        raise Fails  # Java's own error, which a program can't catch
    return values.of_double(float(text.rstrip("fFdD")))


def _tostring(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _fromjson(value: Any) -> Any:
    text = _text(value).strip(" \t\r\n")
    if not text:
        return None
    try:
        found, end = json.JSONDecoder(parse_int=_long, parse_constant=_no_number).raw_decode(text)
    except ValueError:
        raise JqError from None
    if text[end : end + 1].strip(" \t\r\n"):
        raise Fails
    return found


def _long(digits: str) -> int:
    if len(digits) > 18:
        raise Fails
    return int(digits)


def _no_number(_: str) -> Any:
    raise ValueError


def _real(value: Any, made: Callable[[float], float]) -> float:
    if not is_number(value):
        raise JqError
    return made(float(value))


def _sqrt(value: float) -> float:
    if value < 0:
        raise Fails
    return math.sqrt(value)


def _floor(value: float) -> float:
    return math.copysign(float(math.floor(value)), value)


def _to_entries(value: Any) -> list[Any]:
    pairs = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else None
    if pairs is None:
        raise JqError
    return [{"key": key, "value": inner_} for key, inner_ in pairs]


def _from_entries(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in _listed(value):
        if not isinstance(entry, dict):
            raise JqError
        key = next((entry[name] for name in ("key", "Key", "name", "Name") if name in entry), None)
        found[_text(key)] = entry["value"] if "value" in entry else entry.get("Value")
    return found


def _ascii(change: Callable[[str], str]) -> Callable[[Any], str]:
    return lambda value: re.sub("[A-Za-z]+", lambda match: change(match[0]), _text(value))


def _mapped(run: Evaluator, value: Any, node: Node) -> list[Any]:
    return [run.budget.made([found for one in inner(value) for found in run.of(node, one)])]


def _select(run: Evaluator, value: Any, node: Node) -> list[Any]:
    return [value for told in run.of(node, value) if truth(told)]


def _has(value: Any, wanted: Any) -> bool:
    if isinstance(value, dict) and isinstance(wanted, str):
        return wanted in value
    if isinstance(value, list) and type(wanted) is int:
        return 0 <= wanted < len(value)
    raise JqError


def _contains(budget: Budget, value: Any, wanted: Any) -> bool:
    if kind_of(value) != kind_of(wanted):
        raise JqError
    if isinstance(value, dict):
        return all(
            name in value and kind_of(value[name]) == kind_of(one) and _contains(budget, value[name], one)
            for name, one in wanted.items()
        )
    if isinstance(value, list):
        return all(any(kind_of(v) == kind_of(w) and _contains(budget, v, w) for v in value) for w in wanted)
    if isinstance(value, str):
        budget.spend(len(value) // values.CHARACTERS)
        return wanted in value
    return compared(budget, value, wanted) == 0


def _join(run: Evaluator, value: Any, by: Any) -> str:
    joined = None
    for one in inner(value) if isinstance(value, dict | list) else ():
        told = "" if one is None else json_text(one) if isinstance(one, bool | int | float) else one
        before = "" if joined is None else values.added(joined, by)
        joined = run.budget.made(values.added(before, told))
    return joined or ""


def _starts(value: Any, wanted: Any) -> bool:
    return _text(value).startswith(_text(wanted))


def _ends(value: Any, wanted: Any) -> bool:
    return _text(value).endswith(_text(wanted))


def _keyed(run: Evaluator, value: Any, node: Node) -> list[tuple[Any, Any]]:
    """The values with what they are sorted by, sorted."""
    keyed = [(run.of(node, one), one) for one in _listed(value)]
    key = values.sort_key(run.budget)
    return sorted(keyed, key=lambda pair: key(pair[0]))


def _groups(run: Evaluator, value: Any, node: Node) -> list[list[Any]]:
    groups: list[list[Any]] = []
    last: Any = None
    for key, one in _keyed(run, value, node):
        if groups and compared(run.budget, last, key) == 0:
            groups[-1].append(one)
        else:
            groups.append([one])
        last = key
    return groups


def _unique(run: Evaluator, value: Any) -> list[Any]:
    found: list[Any] = []
    for one in sorted(_listed(value), key=values.sort_key(run.budget)):
        if not found or compared(run.budget, found[-1], one):
            found.append(one)
    return found


def _least(run: Evaluator, value: Any) -> Any:
    return min(_listed(value), key=values.sort_key(run.budget), default=None)


def _greatest(run: Evaluator, value: Any) -> Any:
    """The last of equal ones."""
    return max(reversed(_listed(value)), key=values.sort_key(run.budget), default=None)


def _least_by(run: Evaluator, value: Any, node: Node) -> Any:
    keyed = _keyed(run, value, node)
    return keyed[0][1] if keyed else None


def _greatest_by(run: Evaluator, value: Any, node: Node) -> Any:
    keyed = _keyed(run, value, node)
    return keyed[-1][1] if keyed else None


def _truths(run: Evaluator, value: Any, *nodes: Node) -> list[bool]:
    """``any`` and ``all``: of the values in it, of what a program makes of them, or of what another one makes."""
    if len(nodes) == 2:
        return [truth(told) for one in run.of(nodes[0], value) for told in run.of(nodes[1], one)]
    found = [told for one in inner(value) for told in (run.of(nodes[0], one) if nodes else [one])]
    return [truth(told) for told in found]


def _end_of(run: Evaluator, value: Any, node: Node) -> list[Any]:
    found = run.of(node, value)
    return found[-1:] or [None]


def _first_of(run: Evaluator, value: Any, node: Node) -> list[Any]:
    return run.of(node, value)[:1]


def _end_in(place: int) -> Callable[[Any], Any]:
    def end(value: Any) -> Any:
        return _listed(value)[place] if value is not None and _listed(value) else None

    return end


def _plain(made: Callable[[Any], Any]) -> Function:
    return lambda run, value: [run.budget.made(made(value))]


def _with_run(made: Callable[..., Any]) -> Function:
    return lambda run, value, *nodes: [run.budget.made(made(run, value, *nodes))]


def _of_each(made: Callable[[Evaluator, Any, Any], Any]) -> Function:
    """Of every value that the argument has."""
    return lambda run, value, node: [run.budget.made(made(run, value, told)) for told in run.of(node, value)]


def _kept(kinds: tuple[str, ...]) -> Function:
    return lambda run, value: [value] if kind_of(value) in kinds else []


FUNCTIONS: dict[tuple[str, int], Function] = {
    **{(name, 0): _kept(kinds) for name, kinds in _KINDS_OF_KINDS.items()},
    ("length", 0): _plain(_length),
    ("keys", 0): _plain(_keys),
    ("keys_unsorted", 0): _plain(_keys_unsorted),
    ("add", 0): _with_run(_add),
    ("any", 0): _with_run(lambda run, value: any(_truths(run, value))),
    ("all", 0): _with_run(lambda run, value: all(_truths(run, value))),
    ("any", 1): _with_run(lambda run, value, node: any(_truths(run, value, node))),
    ("all", 1): _with_run(lambda run, value, node: all(_truths(run, value, node))),
    ("any", 2): _with_run(lambda run, value, one, other: any(_truths(run, value, one, other))),
    ("all", 2): _with_run(lambda run, value, one, other: all(_truths(run, value, one, other))),
    ("min", 0): _with_run(_least),
    ("max", 0): _with_run(_greatest),
    ("min_by", 1): _with_run(_least_by),
    ("max_by", 1): _with_run(_greatest_by),
    ("sort", 0): _with_run(lambda run, value: sorted(_listed(value), key=values.sort_key(run.budget))),
    ("sort_by", 1): _with_run(lambda run, value, node: [one for _, one in _keyed(run, value, node)]),
    ("group_by", 1): _with_run(_groups),
    ("unique", 0): _with_run(_unique),
    ("unique_by", 1): _with_run(lambda run, value, node: [group[0] for group in _groups(run, value, node)]),
    ("reverse", 0): _plain(lambda value: _listed(value)[::-1]),
    ("flatten", 0): _with_run(lambda run, value: _flat(run, value, math.inf)),
    ("flatten", 1): _flatten_to,
    ("floor", 0): _plain(lambda value: _real(value, _floor)),
    ("sqrt", 0): _plain(lambda value: _real(value, _sqrt)),
    ("tostring", 0): _plain(_tostring),
    ("tonumber", 0): _plain(_tonumber),
    ("tojson", 0): _plain(json_text),
    ("fromjson", 0): _plain(_fromjson),
    ("type", 0): _plain(kind_of),
    ("not", 0): _plain(lambda value: not truth(value)),
    ("empty", 0): lambda run, value: [],
    ("first", 0): _plain(_end_in(0)),
    ("last", 0): _plain(_end_in(-1)),
    ("first", 1): _first_of,
    ("last", 1): _end_of,
    ("to_entries", 0): _plain(_to_entries),
    ("from_entries", 0): _plain(_from_entries),
    ("with_entries", 1): lambda run, value, node: [
        run.budget.made(_from_entries(_mapped(run, run.budget.made(_to_entries(value)), node)[0]))
    ],
    ("ascii_downcase", 0): _plain(_ascii(str.lower)),
    ("ascii_upcase", 0): _plain(_ascii(str.upper)),
    ("map", 1): _mapped,
    ("select", 1): _select,
    ("has", 1): _of_each(lambda run, value, told: _has(value, told)),
    ("contains", 1): _of_each(lambda run, value, told: _contains(run.budget, value, told)),
    ("inside", 1): _of_each(lambda run, value, told: _contains(run.budget, told, value)),
    ("join", 1): _of_each(_join),
    ("split", 1): _of_each(lambda run, value, told: values.split(_text(value), _text(told))),
    ("ltrimstr", 1): _of_each(lambda run, value, told: _text(value).removeprefix(_text(told))),
    ("rtrimstr", 1): _of_each(lambda run, value, told: _text(value).removesuffix(_text(told))),
    ("startswith", 1): _of_each(lambda run, value, told: _starts(value, told)),
    ("endswith", 1): _of_each(lambda run, value, told: _ends(value, told)),
}
