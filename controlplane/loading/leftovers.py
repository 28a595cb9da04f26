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
_SORTED = "rows are always sorted by time"
_COMMENT = "_comment"


def without_leftovers(document: Document) -> tuple[Document, list[str]]:
    """The spec as it is read, and what was taken out or read otherwise, each with its place and why."""
    told: dict[str, None] = {}
    inner = document.get("spec")
    cleaned = _cleaned(_uncommented(document, "", told), (), told)
    if isinstance(inner, dict):
        cleaned["spec"] = _cleaned(cleaned["spec"], ("spec",), told)
    return cleaned, list(told)


def _cleaned(level: Document, place: tuple[str, ...], told: dict[str, None]) -> Document:
    """One level that may have the three parts: the document, or what is under its ``spec``."""
    level = _without(level, _WITHOUT_EFFECT[place], ".".join(place), told)
    parts = {name: part for name, part in level.items() if isinstance(part, dict)}
    for name in ("tuningConfig", "ioConfig"):
        if name in parts:
            level = {**level, name: _small(_without(parts[name], _WITHOUT_EFFECT[name,], name, told), name, told)}
    if isinstance(level.get("ioConfig"), dict) and isinstance(level["ioConfig"].get("inputFormat"), dict):
        shown = _small(level["ioConfig"]["inputFormat"], "ioConfig.inputFormat", told)
        level = {**level, "ioConfig": {**level["ioConfig"], "inputFormat": shown}}
    if "dataSchema" in parts:
        level = {**level, "dataSchema": _schema(parts["dataSchema"], told)}
    return level


def _schema(schema: Document, told: dict[str, None]) -> Document:
    found = dict(schema)
    if isinstance(found.get("granularitySpec"), dict):
        found["granularitySpec"] = _small(found["granularitySpec"], "granularitySpec", told)
    dimensions = found.get("dimensionsSpec")
    if isinstance(dimensions, dict):
        if dimensions.get("forceSegmentSortByTime") is True:  # false asks for another order, and is refused
            dimensions = _without(dimensions, {"forceSegmentSortByTime": _SORTED}, "dimensionsSpec", told)
        named = dimensions.get("dimensions")
        if isinstance(named, list):
            typed = [_small(one, f"dimensionsSpec.dimensions[{n}]", told) for n, one in enumerate(named)]
            dimensions = {**dimensions, "dimensions": typed}
        found["dimensionsSpec"] = dimensions
    return found


def _without(part: Document, unread: Mapping[str, str], place: str, told: dict[str, None]) -> Document:
    for name in unread.keys() & part.keys():
        told[f"{place}.{name}: {unread[name]}".removeprefix(".")] = None
    return {name: value for name, value in part.items() if name not in unread}


def _small(part: Any, place: str, told: dict[str, None]) -> Any:
    """With its type in small letters, where it is in capitals."""
    if not isinstance(part, dict) or not isinstance(part.get("type"), str) or not part["type"].isupper():
        return part
    told[f"{place}.type: {part['type']!r} is read as {part['type'].lower()!r}"] = None
    return {**part, "type": part["type"].lower()}


def _uncommented(value: Any, place: str, told: dict[str, None]) -> Any:
    if isinstance(value, list):
        return [_uncommented(one, f"{place}[{n}]", told) for n, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if _COMMENT in value:
        told[f"{place}.{_COMMENT}: a remark".removeprefix(".")] = None
    return {
        name: _uncommented(inner, f"{place}.{name}".removeprefix("."), told)
        for name, inner in value.items()
        if name != _COMMENT
    }
