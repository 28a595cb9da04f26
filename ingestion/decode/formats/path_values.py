"""What a JsonPath that searches finds, as Druid's library finds it: in the order of the record, outer values first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ingestion.specs.json_path import Step


def found(json_text: str, steps: Sequence[Step]) -> str | None:
    """The values found, as the JSON text of a list; None where the text is no JSON, or is nested too deep."""
    try:
        values = [json.loads(json_text)]
        for step in steps:
            values = [inner for value in values for inner in _inner(value, step)]
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None


def _inner(value: Any, step: Step) -> Iterator[Any]:
    if step.kind == "wildcard":
        yield from _children(value)
    elif step.kind == "descent":
        yield from _at_any_depth(value, step.name)
    elif step.kind == "index":
        if isinstance(value, list) and -len(value) <= int(step.name) < len(value):
            yield value[int(step.name)]
    elif isinstance(value, dict) and step.name in value:
        yield value[step.name]


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _at_any_depth(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]
    for child in _children(value):
        yield from _at_any_depth(child, name)
