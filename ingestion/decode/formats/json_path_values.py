"""What a JsonPath that searches finds, as Druid's library finds it: in the order of the record, outer values first.

A name that an object does not have leads to nothing, and so does null in an object. Nothing counts as an object
without fields there, while null in a list is a plain value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from ingestion.decode.druid_values import to_units
from ingestion.decode.exact_numbers import parse_number, to_json_text
from ingestion.specs.formats.json_path import Comparison, JsonPath, Step

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")


class _Missing(dict[str, Any]):
    """Written as null."""


def is_followed(path: JsonPath) -> bool:
    """Whether a path is followed here; all others DuckDB follows itself."""
    return not path.is_plain or path.function == "keys"


def find_values(json_text: str, path: JsonPath, *, keeps_digits: bool = False) -> str | None:
    """The values found, as the JSON text of a list, or of the one value that a definite path leads to.

    None where there is none, where the text is no JSON, or is nested too deep. ``keeps_digits``: numbers are found as
    they are written.
    """
    try:
        values = [json.loads(json_text, parse_float=parse_number if keeps_digits else None)]
        for step in path.steps:
            values = [inner for value in values for inner in _INNER[step.kind](value, step)]
        if path.function == "keys":
            values = [list(value) for value in values if isinstance(value, dict)]
        results = [None if isinstance(value, _Missing) else value for value in values]
        if path.is_definite:
            return to_json_text(results[0], marked=True) if results else None
        return to_json_text(results, marked=True)
    except (ValueError, RecursionError):
        return None


def _member(value: Any, name: str) -> Any:
    member = value.get(name)
    return _Missing() if member is None else member


def _name(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, dict):
        yield _member(value, step.name)


def _index(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, list):
        yield _element_at(value, int(step.name))


def _element_at(values: list[Any], place: int) -> Any:
    return values[place] if -len(values) <= place < len(values) else _Missing()


def _indexes(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, list):
        yield from (_element_at(value, place) for place in step.numbers if place is not None)


def _slice(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value[slice(*step.numbers)]


def _names(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, dict):
        yield {name: value[name] for name in step.names if name in value}


def _each(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (_member(value, name) for name in step.names)


def _children(value: Any, step: Step | None = None) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (_member(value, name) for name in value)
    elif isinstance(value, list):
        yield from value


def _at_any_depth(value: Any, step: Step) -> Iterator[Any]:
    if isinstance(value, dict) and step.name in value:
        yield _member(value, step.name)
    for child in _children(value):
        yield from _at_any_depth(child, step)


def _filtered(value: Any, step: Step) -> Iterator[Any]:
    candidates = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    for candidate in candidates:
        if any(all(_is_met(candidate, comparison) for comparison in all_of) for all_of in step.any_of):
            yield candidate


def _is_met(value: Any, comparison: Comparison) -> bool:
    for step in comparison.steps:
        value = next(_INNER[step.kind](value, step), None)
    expected = comparison.value
    if comparison.sign in ("==", "!="):
        return _equal(value, expected) == (comparison.sign == "==")
    if isinstance(value, str) and isinstance(expected, str):
        return _is_ordered(to_units(value), comparison.sign, to_units(expected))
    if isinstance(expected, Decimal) and _is_number(value):
        return _is_ordered(Decimal(str(value)), comparison.sign, expected)
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _equal(value: Any, expected: Decimal | str | bool) -> bool:
    """The value's kind decides how the two are compared."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, str):
        return value == str(expected)
    if not _is_number(value):
        return False
    if isinstance(expected, str) and not _NUMBER.fullmatch(expected):
        return False
    return Decimal(str(value)) == Decimal(expected)


def _is_ordered(left: Any, sign: str, right: Any) -> bool:
    if sign in ("<", "<="):
        return bool(left < right or (left == right and sign == "<="))
    return bool(left > right or (left == right and sign == ">="))


_INNER: dict[str, Callable[[Any, Step], Iterator[Any]]] = {
    "name": _name,
    "index": _index,
    "wildcard": _children,
    "descent": _at_any_depth,
    "slice": _slice,
    "indexes": _indexes,
    "names": _names,
    "each": _each,
    "filter": _filtered,
}
