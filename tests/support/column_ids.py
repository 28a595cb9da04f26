"""Ids of columns: for who writes segments without a control plane, and as files have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.client.memory import MemoryColumns
from ingestion.rows import LIST_TYPE
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.writer import columns_of

_FIELD_ID = b"PARQUET:field_id"
Ids = tuple[int | None, int | None]  # of the column, and of a list's values


def some_ids() -> ColumnIds:
    """Those of a datasource of its own."""
    return ColumnIds(MemoryColumns().ids)


def ids_in(file: Any) -> dict[tuple[str, str], Ids]:
    """What a Parquet file's own schema says, by the column's name and type, but of hidden columns."""
    schema = pq.read_schema(file)
    plain = pa.schema([pa.field(f.name, LIST_TYPE if pa.types.is_list(f.type) else f.type) for f in schema])
    return {(c.name, c.type): _ids(schema.field(c.name)) for c in columns_of(plain)}


def _ids(field: pa.Field) -> Ids:
    return _id(field), _id(field.type.value_field) if pa.types.is_list(field.type) else None


def _id(field: pa.Field) -> int | None:
    found = (field.metadata or {}).get(_FIELD_ID)
    return None if found is None else int(found)
