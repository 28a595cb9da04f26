"""Druid's functions of arrays. A plain value is taken for an array of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ingestion.decode.druid_patterns import pattern
from ingestion.decode.druid_strings import check_length
from ingestion.decode.druid_values import (
    Array,
    Element,
    EvaluationFailed,
    Nested,
    Value,
    array_of,
    as_array,
    as_int,
    as_text,
    cast,
    to_units,
)


def _require_plain(array: Array) -> Array:
    if array.element in ("ARRAY", "COMPLEX<json>"):
        raise EvaluationFailed
    return array


def array(*values: Value) -> Value:
    return array_of(values)


def array_length(value: Value) -> Value:
    values = as_array(value)
    return None if values is None else len(values.values)


def _element_at(values: Array | None, place: int) -> Value:
    if values is None or not 0 <= place < len(values.values):
        return None
    value: Value = values.values[place]
    return value


def array_offset(value: Value, place: Value) -> Value:
    return _element_at(as_array(value), as_int(place))


def array_ordinal(value: Value, place: Value) -> Value:
    return _element_at(as_array(value), as_int(place) - 1)


def array_contains(value: Value, searched: Value) -> Value:
    values = as_array(value)
    if values is None:
        return None
    others = searched.values if isinstance(searched, Array) else (searched,)
    return int(all(_contains(_require_plain(values), other) for other in others))


def array_overlap(value: Value, searched: Value) -> Value:
    values = as_array(value)
    if values is None:
        return None
    others = searched.values if isinstance(searched, Array) else (searched,)
    return int(any(_contains(_require_plain(values), other) for other in others))


def scalar_in_array(scalar: Value, value: Value) -> Value:
    values = as_array(value)
    if values is None:
        return None
    if scalar is None and None not in values.values:
        return None
    if isinstance(scalar, float) and values.element == "LONG" and scalar != int(scalar):
        return 0
    return int(_contains(_require_plain(values), scalar))


def _contains(array: Array, value: Any) -> bool:
    """The value is taken for the array's kind."""
    if value is None:
        return None in array.values
    if isinstance(value, Array | Nested):
        raise EvaluationFailed
    element = cast(value, array.element)
    return element is not None and element in array.values


def _index_finder(first: int) -> Callable[[Value, Value], Value]:
    def find_index(value: Value, searched: Value) -> Value:
        values = as_array(value)
        if values is None:
            return None
        if isinstance(searched, Array | Nested):
            raise EvaluationFailed
        same = (i for i, v in enumerate(values.values) if type(v) is type(searched) and v == searched)
        place = next(same, None)
        return None if place is None else place + first

    return find_index


array_offset_of, array_ordinal_of = _index_finder(0), _index_finder(1)


def _cast_element(array: Array, value: Value) -> Any:
    return cast(value, _require_plain(array).element)


def array_append(value: Value, added: Value) -> Value:
    values = as_array(value)
    return None if values is None else Array(values.element, (*values.values, _cast_element(values, added)))


def array_prepend(added: Value, value: Value) -> Value:
    values = as_array(value)
    return None if values is None else Array(values.element, (_cast_element(values, added), *values.values))


def array_concat(value: Value, other: Value) -> Value:
    """The values of both as they are."""
    left, right = as_array(value), as_array(other)
    if left is None or right is None:
        return None
    check_length(len(left.values) + len(right.values))
    return Array(left.element, left.values + right.values)


def array_set_add(value: Value, added: Value) -> Value:
    values = as_array(value)
    return None if values is None else _sorted_set(values.element, (*values.values, _cast_element(values, added)))


def array_set_add_all(value: Value, other: Value) -> Value:
    left, right = as_array(value), as_array(other)
    if left is None or right is None:
        return None
    if left.element != right.element and right.values and left.values:
        raise EvaluationFailed
    return _sorted_set(_require_plain(left).element, left.values + right.values)


def _sorted_set(element: Element, values: tuple[Any, ...]) -> Array:
    distinct = {v for v in values if v is not None}
    ordered = sorted(distinct, key=to_units) if element == "STRING" else sorted(distinct)
    return Array(element, (*([None] if None in values else []), *ordered))


def array_slice(value: Value, start: Value, end: Value = None) -> Value:
    values = as_array(value)
    if values is None:
        return None
    size = len(values.values)
    first, last = as_int(start), size if end is None else as_int(end)
    if first < 0 or first > size or first > last:
        return None
    check_length(last - first)
    missing = (None,) * (last - max(first, size) if last > size else 0)
    return Array(values.element, values.values[first:last] + missing)


def array_to_string(value: Value, between: Value) -> Value:
    values = as_array(value)
    if values is None or (len(values.values) == 1 and values.values[0] is None):
        return None
    if any(isinstance(v, Array) for v in values.values):
        raise EvaluationFailed  # Java has no text for it that says anything
    texts = ["null" if v is None else str(as_text(v)) for v in values.values]
    joined = (as_text(between) or "").join(texts)
    check_length(len(joined))
    return joined


def string_to_array(value: Value, between: Value) -> Value:
    text = as_text(value)
    return None if text is None else Array("STRING", tuple(pattern(as_text(between) or "").split(text)))


def to_text_array(value: Value) -> Value:
    """``mv_to_array`` and the like: an array of texts."""
    values = as_array(value)
    return None if values is None else Array("STRING", tuple(as_text(v) for v in _require_plain(values).values))


def to_text_array_or_null(value: Value) -> Value:
    """``mv_harmonize_nulls``: no value is a null."""
    texts = to_text_array(value)
    return texts if isinstance(texts, Array) and texts.values else Array("STRING", (None,))


def cast_to(value: Value, kind: Value) -> Value:
    """``cast``; the kind was checked when the spec was submitted."""
    name = str(kind).upper()
    if name.startswith("ARRAY<"):
        return _array_cast(value, name[6:-1])  # type: ignore[arg-type]  # one of the three
    if value is None:
        return None
    return cast(value, name)  # type: ignore[arg-type]  # one of the three


def _array_cast(value: Value, element: Element) -> Value:
    values = as_array(value)
    if values is None:
        if isinstance(value, Nested):
            raise EvaluationFailed
        return None
    return Array(element, tuple(None if v is None else cast(v, element) for v in _require_plain(values).values))
