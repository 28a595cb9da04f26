"""The columns of a datasource as the schema of an Iceberg table. Pure.

A name that files have had with several types is several columns. The latest type has the name, as most readers ask for
that one; earlier ones are called ``name__type``. Old files have NULL in the latest column. Of names that differ only by
case the first keeps its own, the others get an underscore: most engines refuse such a table otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from controlplane.segments.models import Column
from ingestion.specs.messages.column_ids import TIME
from ingestion.specs.schema.data_schema import EXTENTS
from ingestion.specs.time_column import TIME_ID

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
    present = _present(columns, last)
    names = _names(present)
    fields = [_field(c, names[c.number]) for c in present]
    if TIME_ID not in names:
        fields.insert(0, {"id": TIME_ID, "name": TIME.name, "required": False, "type": "timestamptz"})
    return {"type": "struct", "schema-id": last, "fields": fields}


def highest_id(columns: Iterable[Column]) -> int:
    return max((_highest_id(c) for c in columns), default=TIME_ID)


def name_mapping(columns: Iterable[Column], last: int) -> str:
    """Ids by name, for readers that ignore a file's own ids as soon as one of its columns has none: hidden ones."""
    present = _present(columns, last)
    latest = {number: name for name, number in _latest(present).items()}  # the names that files have
    fields = [_mapped(field, latest.get(field["id"], field["name"])) for field in table_schema(present, last)["fields"]]
    hidden = [{"field-id": _HIDDEN_ID + place, "names": [name]} for place, name in enumerate(EXTENTS)]
    return json.dumps([*fields, *hidden])


def _mapped(field: dict[str, Any], name: str) -> dict[str, Any]:
    mapped = {"field-id": field["id"], "names": [name]}
    if isinstance(field["type"], dict):
        mapped["fields"] = [{"field-id": field["type"]["element-id"], "names": ["element"]}]
    return mapped


def _present(columns: Iterable[Column], last: int) -> list[Column]:
    return [c for c in columns if _highest_id(c) <= last]


def _highest_id(column: Column) -> int:
    return column.element or column.number


def _names(columns: Sequence[Column]) -> dict[int, str]:
    """By id. The latest column of a name has it; a name that came first is not changed by one that came later."""
    latest, by_id = _latest(columns), {c.number: c for c in columns}
    wanted = {number: name for name, number in latest.items()}
    wanted |= {n: f"{c.name}__{_plain(c.type)}" for n, c in sorted(by_id.items()) if n not in wanted}
    names: dict[int, str] = {}
    taken: set[str] = set()
    for number, name in wanted.items():
        while not taken.isdisjoint(_taken(by_id[number], name)):
            name += "_"
        names[number] = name
        taken.update(_taken(by_id[number], name))
    return names


def _plain(kind: str) -> str:
    """A type as part of a name that needs no quotes: ``thetaSketch`` of ``COMPLEX<thetaSketch>``."""
    return kind.removeprefix("COMPLEX<").removesuffix(">")


def _latest(columns: Sequence[Column]) -> dict[str, int]:
    """The id of the latest column of each name; the names in the order of their first ones."""
    return {c.name: c.number for c in sorted(columns, key=lambda c: c.number)}


def _taken(column: Column, name: str) -> list[str]:
    """Names that no other column can have, whatever their case: a list's values have one too."""
    lower = name.lower()
    return [lower] if column.element is None else [lower, f"{lower}.element"]


def _field(column: Column, name: str) -> dict[str, Any]:
    return {"id": column.number, "name": name, "required": False, "type": _type(column)}


def _type(column: Column) -> str | dict[str, Any]:
    if column.element is None:
        return _TYPES.get(column.type, "binary")
    return {"type": "list", "element-id": column.element, "element": "string", "element-required": False}
