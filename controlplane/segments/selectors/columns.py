"""The columns that a datasource's segments have, and how they changed."""

from __future__ import annotations

from collections.abc import Collection, Set
from datetime import datetime
from typing import Any

from controlplane.datasources.models import Datasource
from controlplane.segments.models import Segment
from ingestion.specs.messages.newest_rows import columns_overlap

SCHEMA_SEGMENTS = 1000


def datasource_schema(datasource: Datasource) -> list[dict[str, Any]]:
    """The columns of its latest segments (1000 at most): name, type, types, segments, since, history.

    ``type`` holds the values of all of them; ``types`` are those that segments have, more than one when they differ.
    ``since``: the first interval with the column, None if the earliest of those segments' intervals has it.
    ``history``: by type the first and last interval's start, and segments; the latest first.
    """
    latest = Segment.objects.filter(datasource=datasource, used=True).order_by("-interval_start", "-partition_num")
    times: dict[str, dict[str, list[datetime]]] = {}
    earliest: datetime | None = None
    for columns, start in latest.values_list("schema__columns", "interval_start")[:SCHEMA_SEGMENTS]:
        earliest = start
        for column in columns:
            times.setdefault(column["name"], {}).setdefault(column["type"], []).append(start)
    names = sorted(times, key=lambda name: (name != "__time", name))
    return [_column(name, times[name], earliest) for name in names]


def mask_warnings(masks: Collection[str], columns: Collection[str]) -> list[str]:
    """What somebody who masks these should know; ``columns``: all that the datasource's segments have."""
    unmasked = [column for column in columns if not any(columns_overlap(mask, column) for mask in masks)]
    warnings = []
    for mask in masks:
        twins = [column for column in unmasked if columns_overlap(mask.casefold(), column.casefold())]
        parents = [column for column in columns if mask.startswith(f"{column}.")]
        if twins:
            warnings += [
                f"Column {twin!r} is not masked: names are case-sensitive, and the mask names {mask!r}."
                for twin in twins
            ]
        elif parents:
            warnings += [
                f"Column {parent!r} is completely hidden, because its field {mask!r} is masked." for parent in parents
            ]
        elif not any(columns_overlap(mask, column) for column in columns):
            warnings.append(f"No segment has a column {mask!r} yet. If one comes, it is masked.")
    return warnings


def _column(name: str, types: dict[str, list[datetime]], earliest: datetime | None) -> dict[str, Any]:
    history: list[dict[str, Any]] = [
        {"type": t, "since": min(at), "until": max(at), "segments": len(at)} for t, at in types.items()
    ]
    since: datetime = min(h["since"] for h in history)
    return {
        "name": name,
        "type": widest_type(set(types)),
        "types": sorted(types),
        "segments": sum(len(at) for at in types.values()),
        "since": None if since == earliest else since,
        "history": sorted(history, key=lambda h: (h["until"], h["since"], h["type"]), reverse=True),
    }


def widest_type(types: Set[str]) -> str:
    """The type that holds the values of all these, as indexers have it when they meet them in one segment."""
    if len(types) == 1:
        return next(iter(types))
    if types == {"long", "double"}:
        return "double"
    return next((t for t in ("json", "strings") if t in types), "string")
