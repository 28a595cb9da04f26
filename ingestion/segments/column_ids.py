"""A column's id as Parquet has it: the field id, by which readers such as Iceberg's find it whatever it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from ingestion.specs.messages.column_ids import ColumnId, ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.protocol import Column

_FIELD_ID = "PARQUET:field_id"

Ask = Callable[[ColumnsRequest], ColumnsAnswer]


class ColumnIds:
    """Those of one datasource, who writes its files. For one thread.

    ``ask``: has the control plane say, or hand out, ids; each column's once, however many files it is written to.
    """

    def __init__(self, ask: Ask) -> None:
        self._request = ask
        self._known: dict[tuple[str, str], ColumnId] = {}

    def marked(self, schema: pa.Schema, columns: Sequence[Column]) -> pa.Schema:
        """The schema with the ids of ``columns``; the hidden ones, which are not among them, have none.

        Raises what asking does.
        """
        self._learn(columns)
        ids = {column.name: self._known[column.name, column.type] for column in columns}
        return pa.schema([_with_column_id(field, ids[field.name]) if field.name in ids else field for field in schema])

    def _learn(self, columns: Sequence[Column]) -> None:
        new = {(c.name, c.type): c for c in columns if (c.name, c.type) not in self._known}
        if new:
            answer = self._request(ColumnsRequest(columns=list(new.values())))
            self._known.update(zip(new, answer.ids, strict=True))


def _with_column_id(field: pa.Field, column_id: ColumnId) -> pa.Field:
    if column_id.element is not None:
        field = field.with_type(pa.list_(_with_id(field.type.value_field, column_id.element)))
    return _with_id(field, column_id.id)


def _with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({_FIELD_ID: str(number)})
