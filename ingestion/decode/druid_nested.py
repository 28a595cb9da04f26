"""Druid's functions of nested values, by its own small JSONPath: ``$``, ``.name``, ``['name']``, ``[0]``."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from ingestion.decode.druid_texts import bounded
from ingestion.decode.druid_values import (
    Array,
    Fails,
    Nested,
    Value,
    array_of,
    cast,
    of_json,
    unwrapped,
)
from ingestion.decode.jackson_texts import json_text

_STEP = re.compile(r"""\.([^.\['"\]]+)|\[(-?\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_DEEPEST = 100


@lru_cache(maxsize=256)
def path(text: str) -> tuple[str | int, ...]:
    """Its steps. Raises ``ValueError``."""
    if not text.startswith("$"):
        raise ValueError(f"the path {text!r} must begin with $")
    place, steps = 1, []
    if text == "$.":
        return ()
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None:
            raise ValueError(f"the path {text!r} is not taken: it has .name, ['name'] and [0] only")
        name, index, single, double = found.groups()
        steps.append(int(index) if index is not None else next(n for n in (name, single, double) if n is not None))
        place = found.end()
    return tuple(steps)


def _found(value: Any, text: Value) -> Any:
    for step in path(str(text)):
        if isinstance(step, int):
            size = len(value) if isinstance(value, list) else 0
            place = step + size if step < 0 else step
            value = value[place] if isinstance(value, list) and 0 <= place < size else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def json_value(value: Value, text: Value, kind: Value = None) -> Value:
    """A plain value, or a list of plain values."""
    found = of_json(_found(unwrapped(value), text))
    if isinstance(found, Nested) or found is None:
        return None
    if isinstance(kind, str):
        name = kind.upper()
        if name.startswith("ARRAY<"):
            if not isinstance(found, Array):
                raise Fails
            return Array(name[6:-1], tuple(cast(v, name[6:-1]) for v in found.values))  # type: ignore[arg-type]
        if isinstance(found, Array):
            return None
        return cast(found, name)  # type: ignore[arg-type]  # one of the three
    return found


def json_query(value: Value, text: Value) -> Value:
    """Whatever is there."""
    found = _found(unwrapped(value), text)
    return None if found is None else Nested(found)


def json_query_array(value: Value, text: Value) -> Value:
    """A plain value is a list of one; null of an object."""
    found = _found(unwrapped(value), text)
    if found is None or isinstance(found, dict):
        return None
    return Nested(found if isinstance(found, list) else [int(found) if isinstance(found, bool) else found])


def json_object(*values: Value) -> Value:
    keys = values[::2]
    if len(values) % 2 or any(not isinstance(k, str) for k in keys):
        raise Fails
    return Nested({str(k): unwrapped(v) for k, v in zip(keys, values[1::2], strict=True)})


def parse_json(value: Value) -> Value:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Fails
    try:
        return _nested(_loaded(value))
    except ValueError:
        raise Fails from None


def try_parse_json(value: Value) -> Value:
    try:
        return parse_json(value)
    except Fails:
        return None


def _nested(value: Any) -> Value:
    return None if value is None else Nested(value)


def _loaded(text: str) -> Any:
    if text.count("[") + text.count("{") > _DEEPEST:
        raise Fails
    if not text.strip():
        raise Fails
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def to_json_string(value: Value) -> Value:
    if value is None:
        return None
    made = json_text(unwrapped(value))
    bounded(len(made))
    return made


def json_keys(value: Value, text: Value) -> Value:
    found = _found(unwrapped(value), text)
    if isinstance(found, list):
        return array_of([str(i) for i in range(len(found))])
    return array_of([*found]) if isinstance(found, dict) else None


def json_merge(*values: Value) -> Value:
    """Right wins; lists are joined."""
    first, *others = values
    if first is None:
        raise Fails
    merged = _for_merging(first)
    for other in others:
        if other is not None:
            merged = _merged(merged, _for_merging(other))
    return Nested(merged)


def _for_merging(value: Value) -> Any:
    found = _loaded_or_fails(value) if isinstance(value, str) else unwrapped(value)
    if not isinstance(found, dict):
        raise Fails
    return found


def _loaded_or_fails(text: str) -> Any:
    try:
        return _loaded(text)
    except ValueError:
        raise Fails from None


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{k: _merged(one[k], v) if k in one else v for k, v in other.items()}}
    if isinstance(one, list) and isinstance(other, list):
        return one + other
    return other
