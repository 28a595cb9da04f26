"""The columns of a datasource as the schema of an Iceberg table. Pure.

A name that files have had with several types is several columns. The latest type has the name, as most readers ask for
that one; earlier ones are called ``name__type``. Old files have NULL in the latest column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from controlplane.segments.models import Column
from ingestion.specs.messages.column_ids import TIME, TIME_ID
from ingestion.specs.schema.data_schema import EXTENTS

# Those of all other types are sketches, which are bytes to readers.
_TYPES = {
    "string": "string",
    "json": "string",
    "long": "long",
    "double": "double",
    "boolean": "boolean",
    "timestamp": "timestamptz",
}
_HIDDEN_ID = 2_000_000_000  # of columns without an id, in the name mapping alone: no table has them


def table_schema(columns: Iterable[Column], last: int) -> dict[str, Any]:
    """The schema when ``last`` was the highest id. It is also the schema's own id: a new column is a new schema."""
    present = [c for c in columns if _highest_id(c) <= last]
    names = _names(present)
    fields = [_field(c, names[c.number]) for c in present]
    if TIME_ID not in names:
        fields.insert(0, {"id": TIME_ID, "name": TIME.name, "required": False, "type": "timestamptz"})
    return {"type": "struct", "schema-id": last, "fields": fields}


def highest_id(columns: Iterable[Column]) -> int:
    return max((_highest_id(c) for c in columns), default=TIME_ID)


def name_mapping(schema: dict[str, Any]) -> str:
    """Ids by name, for readers that ignore a file's own ids as soon as one of its columns has none: hidden ones."""
    fields = [_mapped(field) for field in schema["fields"]]
    hidden = [{"field-id": _HIDDEN_ID + place, "names": [name]} for place, name in enumerate(EXTENTS)]
    return json.dumps([*fields, *hidden])


def _mapped(field: dict[str, Any]) -> dict[str, Any]:
    mapped = {"field-id": field["id"], "names": [field["name"]]}
    if isinstance(field["type"], dict):
        mapped["fields"] = [{"field-id": field["type"]["element-id"], "names": ["element"]}]
    return mapped


def _highest_id(column: Column) -> int:
    return column.element or column.number


def _names(columns: Sequence[Column]) -> dict[int, str]:
    """By id. The latest column of a name has it."""
    latest = {c.name: c.number for c in sorted(columns, key=lambda c: c.number)}
    taken = {name for c in columns for name in _taken(c, c.name)}
    names = {}
    for column in columns:
        name = column.name
        if latest[name] != column.number:
            name = _free(f"{name}__{column.type}", taken)
            taken.update(_taken(column, name))
        names[column.number] = name
    return names


def _taken(column: Column, name: str) -> list[str]:
    """Names that no other column can have: a list's values have one too."""
    return [name] if column.element is None else [name, f"{name}.element"]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _field(column: Column, name: str) -> dict[str, Any]:
    return {"id": column.number, "name": name, "required": False, "type": _type(column)}


def _type(column: Column) -> str | dict[str, Any]:
    if column.element is None:
        return _TYPES.get(column.type, "binary")
    return {"type": "list", "element-id": column.element, "element": "string", "element-required": False}
