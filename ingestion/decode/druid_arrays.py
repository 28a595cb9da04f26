"""Druid's functions of arrays. A plain value is taken for an array of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ingestion.decode.druid_patterns import pattern
from ingestion.decode.druid_texts import bounded
from ingestion.decode.druid_values import (
    Array,
    Element,
    Fails,
    Nested,
    Value,
    array_of,
    as_array,
    as_int,
    as_text,
    cast,
    units,
)


def _plain(array: Array) -> Array:
    if array.element in ("ARRAY", "COMPLEX<json>"):
        raise Fails
    return array


def array(*values: Value) -> Value:
    return array_of(values)


def array_length(value: Value) -> Value:
    found = as_array(value)
    return None if found is None else len(found.values)


def _at(found: Array | None, place: int) -> Value:
    if found is None or not 0 <= place < len(found.values):
        return None
    value: Value = found.values[place]
    return value


def array_offset(value: Value, place: Value) -> Value:
    return _at(as_array(value), as_int(place))


def array_ordinal(value: Value, place: Value) -> Value:
    return _at(as_array(value), as_int(place) - 1)


def array_contains(value: Value, wanted: Value) -> Value:
    one = as_array(value)
    if one is None:
        return None
    others = wanted.values if isinstance(wanted, Array) else (wanted,)
    return int(all(_holds(_plain(one), other) for other in others))


def array_overlap(value: Value, wanted: Value) -> Value:
    one = as_array(value)
    if one is None:
        return None
    others = wanted.values if isinstance(wanted, Array) else (wanted,)
    return int(any(_holds(_plain(one), other) for other in others))


def scalar_in_array(wanted: Value, value: Value) -> Value:
    found = as_array(value)
    if found is None:
        return None
    if wanted is None and None not in found.values:
        return None
    if isinstance(wanted, float) and found.element == "LONG" and wanted != int(wanted):
        return 0
    return int(_holds(_plain(found), wanted))


def _holds(array: Array, value: Any) -> bool:
    """The value is taken for the array's kind."""
    if value is None:
        return None in array.values
    if isinstance(value, Array | Nested):
        raise Fails
    taken = cast(value, array.element)
    return taken is not None and taken in array.values


def _place_of(first: int) -> Callable[[Value, Value], Value]:
    def made(value: Value, wanted: Value) -> Value:
        found = as_array(value)
        if found is None:
            return None
        if isinstance(wanted, Array | Nested):
            raise Fails
        same = (i for i, v in enumerate(found.values) if type(v) is type(wanted) and v == wanted)
        place = next(same, None)
        return None if place is None else place + first

    return made


array_offset_of, array_ordinal_of = _place_of(0), _place_of(1)


def _taken(array: Array, value: Value) -> Any:
    return cast(value, _plain(array).element)


def array_append(value: Value, added: Value) -> Value:
    found = as_array(value)
    return None if found is None else Array(found.element, (*found.values, _taken(found, added)))


def array_prepend(added: Value, value: Value) -> Value:
    found = as_array(value)
    return None if found is None else Array(found.element, (_taken(found, added), *found.values))


def array_concat(value: Value, other: Value) -> Value:
    """The values of both as they are."""
    one, two = as_array(value), as_array(other)
    if one is None or two is None:
        return None
    bounded(len(one.values) + len(two.values))
    return Array(one.element, one.values + two.values)


def array_set_add(value: Value, added: Value) -> Value:
    found = as_array(value)
    return None if found is None else _set(found.element, (*found.values, _taken(found, added)))


def array_set_add_all(value: Value, other: Value) -> Value:
    one, two = as_array(value), as_array(other)
    if one is None or two is None:
        return None
    if one.element != two.element and two.values and one.values:
        raise Fails
    return _set(_plain(one).element, one.values + two.values)


def _set(element: Element, values: tuple[Any, ...]) -> Array:
    there = {v for v in values if v is not None}
    ordered = sorted(there, key=units) if element == "STRING" else sorted(there)
    return Array(element, (*([None] if None in values else []), *ordered))


def array_slice(value: Value, start: Value, end: Value = None) -> Value:
    found = as_array(value)
    if found is None:
        return None
    size = len(found.values)
    first, last = as_int(start), size if end is None else as_int(end)
    if first < 0 or first > size or first > last:
        return None
    bounded(last - first)
    missing = (None,) * (last - max(first, size) if last > size else 0)
    return Array(found.element, found.values[first:last] + missing)


def array_to_string(value: Value, between: Value) -> Value:
    found = as_array(value)
    if found is None or (len(found.values) == 1 and found.values[0] is None):
        return None
    if any(isinstance(v, Array) for v in found.values):
        raise Fails  # Java has no text for it that says anything
    texts = ["null" if v is None else str(as_text(v)) for v in found.values]
    made = (as_text(between) or "").join(texts)
    bounded(len(made))
    return made


def string_to_array(value: Value, between: Value) -> Value:
    text = as_text(value)
    return None if text is None else Array("STRING", tuple(pattern(as_text(between) or "").split(text)))


def of_texts(value: Value) -> Value:
    """``mv_to_array`` and the like: an array of texts."""
    found = as_array(value)
    return None if found is None else Array("STRING", tuple(as_text(v) for v in _plain(found).values))


def of_texts_or_null(value: Value) -> Value:
    """``mv_harmonize_nulls``: no value is a null."""
    found = of_texts(value)
    return found if isinstance(found, Array) and found.values else Array("STRING", (None,))


def cast_to(value: Value, kind: Value) -> Value:
    """``cast``; the kind was checked when the spec was submitted."""
    name = str(kind).upper()
    if name.startswith("ARRAY<"):
        return _array_cast(value, name[6:-1])  # type: ignore[arg-type]  # one of the three
    if value is None:
        return None
    return cast(value, name)  # type: ignore[arg-type]  # one of the three


def _array_cast(value: Value, element: Element) -> Value:
    found = as_array(value)
    if found is None:
        if isinstance(value, Nested):
            raise Fails
        return None
    return Array(element, tuple(None if v is None else cast(v, element) for v in _plain(found).values))
