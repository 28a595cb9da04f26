"""Rows and fields as JSON values that any reader takes: no NaN, no deeper than a spec may be."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pyarrow as pa

from ingestion.sketches.description import describe_sketch
from ingestion.sketches.types import SketchType

DEEPEST = 40


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Each row by column, without nulls; times are milliseconds since 1970.

    A sketch is an object: ``sketch`` is its bytes in base64, and what it tells stands beside.
    """
    columns = [_values(column) for column in table.columns]
    names = table.column_names
    return [
        {name: values[row] for name, values in zip(names, columns, strict=True) if values[row] is not None}
        for row in range(len(table))
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if isinstance(column.type, pa.JsonType):
        return [None if text is None else json_value(text) for text in column.cast(pa.string()).to_pylist()]
    if isinstance(column.type, SketchType):
        return [None if v is None else _sketch(column.type.kind, v) for v in column.to_pylist()]
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_floating(column.type):
        return [value if value is None or math.isfinite(value) else None for value in column.to_pylist()]
    return list(column.to_pylist())


def _sketch(kind: str, stored: bytes) -> dict[str, Any]:
    return {"sketch": base64.b64encode(stored).decode(), **describe_sketch(kind, stored)}


def json_value(text: str) -> Any:
    """What a JSON text says; the text itself if it says nothing, or is nested too deeply to be looked at.

    As for the decoder, of a name that stands twice in an object the first counts. NaN and Infinity are None.
    """
    if text.count("{") + text.count("[") > DEEPEST and _depth(text) > DEEPEST:
        return text
    try:
        return json.loads(text, parse_constant=lambda _: None, parse_float=_finite, object_pairs_hook=_keep_first)
    except ValueError:
        return text


def _depth(text: str) -> int:
    """How deeply a text is nested; brackets inside of strings are no brackets."""
    deepest = depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _keep_first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs)) if len({name for name, _ in pairs}) < len(pairs) else dict(pairs)
