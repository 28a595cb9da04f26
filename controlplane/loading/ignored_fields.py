"""What an imported spec says that Druid does not read, or that means nothing here: it is taken out, and told.

Druid ignores fields that it does not know, so old specs have fields of other tasks, of earlier versions, and in wrong
places. A spec that somebody writes is refused for these: there a wrong place is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

_NOT_READ = "Druid does not read it here"
_WITHOUT_EFFECT: dict[tuple[str, ...], dict[str, str]] = {
    (): {"version": _NOT_READ},
    ("spec",): {"context": f"{_NOT_READ}; context belongs beside spec", "version": _NOT_READ},
    ("tuningConfig",): {
        "awaitSegmentAvailabilityTimeoutMillis": "a segment is readable after its publish",
        "releaseLocksOnHandoff": "tasks lock no intervals",
        "skipOffsetGaps": "missing offsets are always skipped",
        "taskCount": f"{_NOT_READ}; it belongs in ioConfig",
        "appendToExisting": "a stream always appends",
    },
    ("ioConfig",): {
        "skipOffsetGaps": "missing offsets are always skipped",
        "appendToExisting": "a stream always appends",
    },
}
_ALWAYS_SORTED = "rows are always sorted by time"
_COMMENT = "_comment"


def without_leftovers(document: Document) -> tuple[Document, list[str]]:
    """The spec as it is read, and what was taken out or read otherwise, each with its place and why."""
    remarks: dict[str, None] = {}
    inner = document.get("spec")
    cleaned = _clean_level(_without_comments(document, "", remarks), (), remarks)
    if isinstance(inner, dict):
        cleaned["spec"] = _clean_level(cleaned["spec"], ("spec",), remarks)
    return cleaned, list(remarks)


def _clean_level(level: Document, place: tuple[str, ...], remarks: dict[str, None]) -> Document:
    """One level that may have the three parts: the document, or what is under its ``spec``."""
    level = _without_fields(level, _WITHOUT_EFFECT[place], ".".join(place), remarks)
    parts = {name: part for name, part in level.items() if isinstance(part, dict)}
    for name in ("tuningConfig", "ioConfig"):
        if name in parts:
            level = {
                **level,
                name: _lowercase_type(
                    _without_fields(parts[name], _WITHOUT_EFFECT[name,], name, remarks), name, remarks
                ),
            }
    if isinstance(level.get("ioConfig"), dict) and isinstance(level["ioConfig"].get("inputFormat"), dict):
        shown = _lowercase_type(level["ioConfig"]["inputFormat"], "ioConfig.inputFormat", remarks)
        level = {**level, "ioConfig": {**level["ioConfig"], "inputFormat": shown}}
    if "dataSchema" in parts:
        level = {**level, "dataSchema": _clean_schema(parts["dataSchema"], remarks)}
    return level


def _clean_schema(schema: Document, remarks: dict[str, None]) -> Document:
    cleaned = dict(schema)
    if isinstance(cleaned.get("granularitySpec"), dict):
        cleaned["granularitySpec"] = _lowercase_type(cleaned["granularitySpec"], "granularitySpec", remarks)
    dimensions = cleaned.get("dimensionsSpec")
    if isinstance(dimensions, dict):
        if dimensions.get("forceSegmentSortByTime") is True:  # false asks for another order, and is refused
            dimensions = _without_fields(
                dimensions, {"forceSegmentSortByTime": _ALWAYS_SORTED}, "dimensionsSpec", remarks
            )
        columns = dimensions.get("dimensions")
        if isinstance(columns, list):
            typed = [
                _lowercase_type(column, f"dimensionsSpec.dimensions[{n}]", remarks) for n, column in enumerate(columns)
            ]
            dimensions = {**dimensions, "dimensions": typed}
        cleaned["dimensionsSpec"] = dimensions
    return cleaned


def _without_fields(part: Document, unread: Mapping[str, str], place: str, remarks: dict[str, None]) -> Document:
    for name in unread.keys() & part.keys():
        remarks[f"{place}.{name}: {unread[name]}".removeprefix(".")] = None
    return {name: value for name, value in part.items() if name not in unread}


def _lowercase_type(part: Any, place: str, remarks: dict[str, None]) -> Any:
    """With its type in small letters, where it is in capitals."""
    if not isinstance(part, dict) or not isinstance(part.get("type"), str) or not part["type"].isupper():
        return part
    remarks[f"{place}.type: {part['type']!r} is read as {part['type'].lower()!r}"] = None
    return {**part, "type": part["type"].lower()}


def _without_comments(value: Any, place: str, remarks: dict[str, None]) -> Any:
    if isinstance(value, list):
        return [_without_comments(item, f"{place}[{n}]", remarks) for n, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if _COMMENT in value:
        remarks[f"{place}.{_COMMENT}: a remark".removeprefix(".")] = None
    return {
        name: _without_comments(inner, f"{place}.{name}".removeprefix("."), remarks)
        for name, inner in value.items()
        if name != _COMMENT
    }
