"""Fields of an expression of Druid's that hold lists: where lists are meant, and where plain values are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.druid_parser import parse_druid
from ingestion.decode.field_uses import field_uses
from ingestion.decode.fields import Mask
from ingestion.decode.java_texts import UNREADABLE
from ingestion.decode.transforms import Columns


@dataclass(frozen=True)
class Lists:
    """Of which records a field holds a list of several values."""

    of_values: Mask  # where a plain value is meant
    of_both: Mask  # where it is meant in both ways, or holds more than plain values: nobody knows what comes of it


@dataclass(frozen=True)
class ListUses:
    """Of an expression: the fields that stand for lists, and those that stand for plain values."""

    for_lists: frozenset[str]
    for_values: frozenset[str]

    @classmethod
    def of(cls, expression: str) -> ListUses:
        """Of one that can be read."""
        all_uses = [*field_uses(parse_druid(expression, lambda name, arguments: None))]
        return cls(
            frozenset(n for n, listed in all_uses if listed), frozenset(n for n, listed in all_uses if not listed)
        )

    def unwrapped(self, columns: Columns) -> tuple[Columns, Lists | None]:
        """The fields, lists of one value as that value; and where longer ones stand. None: nowhere is a list."""
        changed: dict[str, pa.Array] = {}
        lists: Lists | None = None
        for name in sorted(self.for_values & columns.keys()):
            are = pc.starts_with(columns[name], "[").fill_null(False)
            places = np.flatnonzero(are.to_numpy(zero_copy_only=False))
            if not len(places):
                continue
            lists = lists or Lists(*(np.zeros(len(columns[name]), np.bool_) for _ in range(2)))
            values = [_elements(text) for text in columns[name].take(pa.array(places)).to_pylist()]
            nested = np.array([any(isinstance(inner, dict | list) for inner in v) for v in values])
            several = np.array([len(v) > 1 for v in values])
            lists.of_both[places[nested | (several & (name in self.for_lists))]] = True
            lists.of_values[places[several & ~nested & (name not in self.for_lists)]] = True
            texts = [json.dumps(v[0] if len(v) == 1 else v) for v in values]
            changed[name] = pc.replace_with_mask(columns[name], are, pa.array(texts, pa.string()))
        return {**columns, **changed} if changed else columns, lists


def _elements(text: str) -> list[Any]:
    """Of what can't be read something that is no plain value."""
    try:
        return list(json.loads(text))
    except UNREADABLE:
        return [[]]
