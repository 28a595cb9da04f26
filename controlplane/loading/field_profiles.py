"""What the fields of a sample are like: pure functions over what was read of its records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingestion.specs.messages.protocol import Column

MAX_EXAMPLES = 3
LONGEST_EXAMPLE = 60
MAX_NESTED = 200
DEEPEST = 6
_MAX_DISTINCT = 1000


@dataclass(frozen=True)
class FieldProfile:
    """One field of the records."""

    name: str
    type: str  # what discovery makes of it
    null_share: float  # of the records that can be read, those without it
    examples: list[str]
    distinct: int  # different values in the sample


@dataclass(frozen=True)
class NestedField:
    """A value inside of an object, which a flatten path can make a field."""

    name: str  # a name for it
    nodes: list[str]  # the names that lead to it
    share: float  # of the records that can be read, those that have it
    example: str


def field_profiles(columns: Iterable[Column], records: Sequence[Any]) -> list[FieldProfile]:
    """``columns``: the fields, with their types. ``records``: what was read of each, None where that failed."""
    read = [record for record in records if isinstance(record, dict)]
    return [_profile(column, [record.get(column.name) for record in read]) for column in columns]


def _profile(column: Column, values: list[Any]) -> FieldProfile:
    present = [v for v in values if v is not None]
    texts = dict.fromkeys(short_text(v) for v in present[:_MAX_DISTINCT])
    nulls = 1 - len(present) / len(values) if values else 0.0
    return FieldProfile(column.name, column.type, nulls, list(texts)[:MAX_EXAMPLES], len(texts))


def nested_fields(records: Sequence[Any]) -> list[NestedField]:
    """The most common first; objects are entered, lists are values."""
    read = [record for record in records if isinstance(record, dict)]
    leaves: dict[tuple[str, ...], _Leaf] = {}
    for record in read:
        for nodes, value in _leaves(record, ()):
            if len(nodes) > 1 and (nodes in leaves or len(leaves) < MAX_NESTED):
                leaves.setdefault(nodes, _Leaf(value)).records += 1
    common = sorted(leaves.items(), key=lambda item: (-item[1].records, item[0]))
    return [NestedField("_".join(n), list(n), f.records / len(read), short_text(f.example)) for n, f in common]


@dataclass
class _Leaf:
    example: Any
    records: int = field(default=0)


def _leaves(value: dict[str, Any], nodes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and inner and len(nodes) + 1 < DEEPEST:
            yield from _leaves(inner, (*nodes, name))
        elif inner is not None:
            yield (*nodes, name), inner


def short_text(value: Any) -> str:
    """A value as a short text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + "…"
