"""The columns that a datasource's segments have."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from controlplane.datasources.models import Datasource
from controlplane.segments.models import Segment

SCHEMA_SEGMENTS = 1000


def datasource_schema(datasource: Datasource) -> list[dict[str, Any]]:
    """The columns of its latest segments (1000 at most): name, type, types, segments.

    ``type`` holds the values of all of them; ``types`` are those that segments have, more than one when they differ.
    """
    latest = Segment.objects.filter(datasource=datasource, used=True).order_by("-interval_start", "-partition_num")
    types: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for columns in latest.values_list("columns", flat=True)[:SCHEMA_SEGMENTS]:
        for column in columns:
            types.setdefault(column["name"], set()).add(column["type"])
            counts[column["name"]] = counts.get(column["name"], 0) + 1
    names = sorted(types, key=lambda name: (name != "__time", name))
    return [{"name": n, "type": widest(types[n]), "types": sorted(types[n]), "segments": counts[n]} for n in names]


def widest(types: Set[str]) -> str:
    """The type that holds the values of all these, as indexers have it when they meet them in one segment."""
    if len(types) == 1:
        return next(iter(types))
    if types == {"long", "double"}:
        return "double"
    return next((t for t in ("json", "strings") if t in types), "string")
