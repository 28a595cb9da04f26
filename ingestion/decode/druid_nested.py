"""Druid's functions of nested values, by its own small JSONPath: ``$``, ``.name``, ``['name']``, ``[0]``."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from ingestion.decode.druid_strings import check_length
from ingestion.decode.druid_values import (
    Array,
    EvaluationFailed,
    Nested,
    Value,
    array_of,
    cast,
    from_json,
    to_json_value,
)
from ingestion.decode.jackson_texts import json_text

_STEP = re.compile(r"""\.([^.\['"\]]+)|\[(-?\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_DEEPEST = 100


@lru_cache(maxsize=256)
def parse_path(text: str) -> tuple[str | int, ...]:
    """Its steps. Raises ``ValueError``."""
    if not text.startswith("$"):
        raise ValueError(f"the path {text!r} must begin with $")
    place, steps = 1, []
    if text == "$.":
        return ()
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise ValueError(f"the path {text!r} is not supported: only .name, ['name'] and [0] are")
        name, index, single, double = match.groups()
        steps.append(int(index) if index is not None else next(n for n in (name, single, double) if n is not None))
        place = match.end()
    return tuple(steps)


def _find_path(value: Any, text: Value) -> Any:
    for step in parse_path(str(text)):
        if isinstance(step, int):
            size = len(value) if isinstance(value, list) else 0
            place = step + size if step < 0 else step
            value = value[place] if isinstance(value, list) and 0 <= place < size else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def json_value(value: Value, text: Value, kind: Value = None) -> Value:
    """A plain value, or a list of plain values."""
    plain_value = from_json(_find_path(to_json_value(value), text))
    if isinstance(plain_value, Nested) or plain_value is None:
        return None
    if isinstance(kind, str):
        name = kind.upper()
        if name.startswith("ARRAY<"):
            if not isinstance(plain_value, Array):
                raise EvaluationFailed
            return Array(name[6:-1], tuple(cast(v, name[6:-1]) for v in plain_value.values))  # type: ignore[arg-type]
        if isinstance(plain_value, Array):
            return None
        return cast(plain_value, name)  # type: ignore[arg-type]  # one of the three
    return plain_value


def json_query(value: Value, text: Value) -> Value:
    """Whatever is there."""
    nested_value = _find_path(to_json_value(value), text)
    return None if nested_value is None else Nested(nested_value)


def json_query_array(value: Value, text: Value) -> Value:
    """A plain value is a list of one; null of an object."""
    nested_value = _find_path(to_json_value(value), text)
    if nested_value is None or isinstance(nested_value, dict):
        return None
    return Nested(
        nested_value
        if isinstance(nested_value, list)
        else [int(nested_value) if isinstance(nested_value, bool) else nested_value]
    )


def json_object(*values: Value) -> Value:
    keys = values[::2]
    if len(values) % 2 or any(not isinstance(k, str) for k in keys):
        raise EvaluationFailed
    return Nested({str(k): to_json_value(v) for k, v in zip(keys, values[1::2], strict=True)})


def parse_json(value: Value) -> Value:
    if value is None:
        return None
    if not isinstance(value, str):
        raise EvaluationFailed
    try:
        return _wrap_nested(_load_json(value))
    except ValueError:
        raise EvaluationFailed from None


def try_parse_json(value: Value) -> Value:
    try:
        return parse_json(value)
    except EvaluationFailed:
        return None


def _wrap_nested(value: Any) -> Value:
    return None if value is None else Nested(value)


def _load_json(text: str) -> Any:
    if text.count("[") + text.count("{") > _DEEPEST:
        raise EvaluationFailed
    if not text.strip():
        raise EvaluationFailed
    return json.loads(text, parse_constant=_reject_constant)


def _reject_constant(name: str) -> Any:
    raise ValueError(name)


def to_json_string(value: Value) -> Value:
    if value is None:
        return None
    text = json_text(to_json_value(value))
    check_length(len(text))
    return text


def json_keys(value: Value, text: Value) -> Value:
    nested_value = _find_path(to_json_value(value), text)
    if isinstance(nested_value, list):
        return array_of([str(i) for i in range(len(nested_value))])
    return array_of([*nested_value]) if isinstance(nested_value, dict) else None


def json_merge(*values: Value) -> Value:
    """Right wins; lists are joined."""
    first, *others = values
    if first is None:
        raise EvaluationFailed
    merged = _require_object(first)
    for other in others:
        if other is not None:
            merged = _merge(merged, _require_object(other))
    return Nested(merged)


def _require_object(value: Value) -> Any:
    loaded = _load_or_fail(value) if isinstance(value, str) else to_json_value(value)
    if not isinstance(loaded, dict):
        raise EvaluationFailed
    return loaded


def _load_or_fail(text: str) -> Any:
    try:
        return _load_json(text)
    except ValueError:
        raise EvaluationFailed from None


def _merge(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **{k: _merge(left[k], v) if k in left else v for k, v in right.items()}}
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    return right
