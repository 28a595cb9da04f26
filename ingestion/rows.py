"""What a table of decoded rows looks like, and what columns several of them have together.

Decoding makes such tables and segments are made of them; neither knows the other. Columns hold Druid's floats as
doubles.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.sketches.types import SketchType

ROW = "__row"
TIME = "__time"
RECORD_TIME = "__record_time"  # before it was cut: first and last need it until rows are rolled up
TIME_TYPE = pa.timestamp("ms", "UTC")
JSON_TYPE = pa.json_(pa.string())
LIST_TYPE = pa.list_(pa.string())

_WRITTEN_IN_FULL = 2.0**29  # Java writes all digits of whole floats below

Indexes = npt.NDArray[np.int64]


def row_indexes(rows: pa.Table) -> Indexes:
    """Column 0 of rows: the payload index of every row, int64, in the order of the rows."""
    return np.asarray(rows.column(0).to_numpy(), dtype=np.int64)


class Columns:
    """The union of tables' columns: names in the order they were first met, types that hold what all tables hold.

    The first ``lead`` columns of a table are not looked at. A column of nothing but nulls has no say in its type.
    """

    def __init__(self) -> None:
        self._types: dict[str, pa.DataType] = {}
        self._empty: dict[str, bool] = {}

    def add(self, rows: pa.Table, lead: int = 2) -> None:
        """Take in what a table has."""
        for name, column in zip(rows.column_names[lead:], rows.columns[lead:], strict=True):
            self._add(name, column.type, column.null_count == len(column))

    def _add(self, name: str, kind: pa.DataType, empty: bool) -> None:
        if name not in self._types or (self._empty[name] and not empty):
            self._types[name] = kind
            self._empty[name] = empty
        elif self._empty[name] or not empty:
            self._types[name] = _wider(self._types[name], kind)

    def __len__(self) -> int:
        return len(self._types)

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(name, kind) for name, kind in self._types.items()]

    def agrees_with(self, other: Columns) -> bool:
        """Whether every column that holds something in both has one type."""
        return all(
            self._types[name] == other._types[name]
            for name in self._types.keys() & other._types.keys()
            if not self._empty[name] and not other._empty[name]
        )


def columns_of(tables: Iterable[pa.Table], lead: int = 2) -> Columns:
    """The union of these tables' columns."""
    columns = Columns()
    for table in tables:
        columns.add(table, lead)
    return columns


def join_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables' rows under the union of their columns (the first two are the same in all)."""
    if len(tables) == 1:
        return tables[0]
    fields = columns_of(tables).fields
    return pa.concat_tables([conform(t, fields) for t in tables])


def conform(rows: pa.Table, fields: Sequence[pa.Field], lead: int = 2) -> pa.Table:
    """The first ``lead`` columns as they are, then ``fields``: those of ``rows`` in their type, nulls for the rest."""
    columns = dict(zip(rows.column_names[lead:], rows.columns[lead:], strict=True))
    others = [_as_type(columns[f.name], f.type) if f.name in columns else pa.nulls(len(rows), f.type) for f in fields]
    return pa.table([*rows.columns[:lead], *others], names=[*rows.column_names[:lead], *(f.name for f in fields)])


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """In whatever order types come, the widest of them is the same."""
    if left == right:
        return left
    if JSON_TYPE in (left, right):
        return JSON_TYPE
    if LIST_TYPE in (left, right):
        return LIST_TYPE
    return pa.float64() if {left, right} == {pa.int64(), pa.float64()} else pa.string()


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    if isinstance(column.type, SketchType):
        # Segments in which the column is something else are read with it: as a text, as Druid writes it.
        texts = [None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()]
        return _as_type(pa.chunked_array([pa.array(texts, pa.string())]), kind)
    if kind == JSON_TYPE:
        texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in column.to_pylist()]
        return pa.array(texts, pa.string()).cast(JSON_TYPE)
    if kind == LIST_TYPE:
        values = column.cast(pa.string()).to_pylist()
        return pa.array([None if v is None else [v] for v in values], LIST_TYPE)
    return column.cast(kind, safe=False)  # among doubles a great whole number is rounded


def as_floats(numbers: pa.Array) -> pa.Array:
    """Doubles that have the digits which Java writes of the nearest floats; null beyond a float."""
    near = numbers.cast(pa.float32(), safe=False)
    near = pc.if_else(pc.is_finite(near), near, None)
    wide = near.cast(pa.float64())
    in_full = pc.and_(pc.equal(pc.trunc(wide), wide), pc.less(pc.abs(wide), _WRITTEN_IN_FULL))
    return pc.if_else(in_full, wide, near.cast(pa.string()).cast(pa.float64()))
