"""A spec's JSON in the order in which people write it, and what differs between two versions, line by line.

The database keeps keys in an order of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, get_args

from pydantic import BaseModel

from ingestion.specs.tasks.ingestion_spec import SupervisorSpec

MAX_PAIRS = 50_000


def spec_text(spec: Any) -> str:
    """Indented JSON, its keys ordered as the spec models name them, others after them by name."""
    return json.dumps(_ordered(spec), indent=2, ensure_ascii=False)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (_RANKS.get(name, len(_RANKS)), name))
        return {name: _ordered(value[name]) for name in names}
    return [_ordered(v) for v in value] if isinstance(value, list) else value


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        for inner in _models(field.annotation):
            yield from _names(inner)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models an annotation holds. Filters hold filters: their keys need no order of ours."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel) and not part.__name__.endswith("Filter"):
            yield part


_RANKS = {name: rank for rank, name in enumerate(dict.fromkeys(_names(SupervisorSpec)))}


@dataclass(frozen=True)
class DiffLine:
    """One line of the difference between two specs."""

    kind: str  # added, removed, same, or place (where in the document the next lines are)
    text: str


def spec_diff(before: Mapping[str, Any], after: Mapping[str, Any], context: int = 3) -> list[DiffLine]:
    """Unified lines of both as JSON; empty when they say the same.

    Where comparing them line by line would take long, all lines of the one are removed and all of the other added.
    """
    old, new = _lines(before), _lines(after)
    if old != new and _pairs(old, new) > MAX_PAIRS:
        return [*(DiffLine("removed", f"-{text}") for text in old), *(DiffLine("added", f"+{text}") for text in new)]
    lines = unified_diff(old, new, lineterm="", n=context)
    return [_line(text) for text in list(lines)[2:]]


def _pairs(old: list[str], new: list[str]) -> int:
    """How many pairs of equal lines ``difflib`` looks at, again and again. It leaves out lines that stand often."""
    counts = Counter(new)
    often = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    return sum(counts[text] for text in old if counts[text] <= often)


def _lines(spec: Mapping[str, Any]) -> list[str]:
    return spec_text(spec).splitlines()


def _line(text: str) -> DiffLine:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(text[:1], "same")
    return DiffLine(kind, text)
