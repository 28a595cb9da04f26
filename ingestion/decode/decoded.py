"""What became of a batch of payloads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ROW = "__row"
TIME = "__time"
RECORD_TIME = "__record_time"  # before it was cut: first and last need it until rows are rolled up
TIME_TYPE = pa.timestamp("ms", "UTC")
JSON_TYPE = pa.json_(pa.string())
LIST_TYPE = pa.list_(pa.string())

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Decoded:
    """Every index 0..len(payloads)-1 is in exactly one of the five.

    ``rows``: column 0 is ``__row`` (int32, index into the payloads, ascending), column 1 ``__time``
    (timestamp[ms, UTC]), then dimensions and metrics: string, list of strings, int64, double, bool, or ``arrow.json``
    for JSON text; last, if rollup needs it, ``__record_time``. Take the index with ``row_indexes(rows)``: records may
    hold a field named ``__row`` too, which is then a column of its own further right (the segment has it, as
    ``__row``).
    ``unparseable``: what is wrong, and where, in one line without the payload. ``filtered``: dropped by
    transformSpec.filter. ``outside_window``: too late or too early. ``crashed``: killed the decoder's process, or hung
    in it; only from ``IsolatedDecoder``. ``processed_with_error``: of the rows' records, those with a field that could
    not be stored as its type says, and what is wrong with it.
    """

    rows: pa.Table
    unparseable: dict[int, str] = field(default_factory=dict)
    filtered: list[int] = field(default_factory=list)
    outside_window: list[int] = field(default_factory=list)
    crashed: dict[int, str] = field(default_factory=dict)
    processed_with_error: dict[int, str] = field(default_factory=dict)

    def moved(self, by: Sequence[int]) -> Decoded:
        """The same with index ``i`` replaced by ``by[i]`` (ascending)."""
        places = np.asarray(by, dtype=np.int32)
        index = pa.array(places[row_indexes(self.rows)], pa.int32())
        return Decoded(
            rows=self.rows.set_column(0, ROW, index),
            unparseable={by[i]: text for i, text in self.unparseable.items()},
            filtered=[by[i] for i in self.filtered],
            outside_window=[by[i] for i in self.outside_window],
            crashed={by[i]: text for i, text in self.crashed.items()},
            processed_with_error={by[i]: text for i, text in self.processed_with_error.items()},
        )


def row_indexes(rows: pa.Table) -> Indexes:
    """The payload index of every row: int64, in the order of the rows."""
    return np.asarray(rows.column(0).to_numpy(), dtype=np.int64)


def joined(parts: Sequence[Decoded]) -> Decoded:
    """One result of several that share no index; columns get the type that holds what all parts hold."""
    rows = joined_rows([p.rows for p in parts])
    order = np.argsort(row_indexes(rows), kind="stable")
    return Decoded(
        rows=rows.take(pa.array(order)),
        unparseable={i: text for p in parts for i, text in p.unparseable.items()},
        filtered=sorted(i for p in parts for i in p.filtered),
        outside_window=sorted(i for p in parts for i in p.outside_window),
        crashed={i: text for p in parts for i, text in p.crashed.items()},
        processed_with_error={i: text for p in parts for i, text in p.processed_with_error.items()},
    )


def joined_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables' rows under the union of their columns (the first two are the same in all)."""
    if len(tables) == 1:
        return tables[0]
    names = list(dict.fromkeys(name for t in tables for name in t.column_names[2:]))
    dimensions = [pa.table(t.columns[2:], names=t.column_names[2:]) for t in tables]
    fields = [pa.field(name, _common_type(dimensions, name)) for name in names]
    parts = [_conformed(t, d, fields) for t, d in zip(tables, dimensions, strict=True)]
    return pa.concat_tables(parts)


def _conformed(table: pa.Table, dimensions: pa.Table, fields: list[pa.Field]) -> pa.Table:
    held = set(dimensions.column_names)
    columns = [
        _as_type(dimensions.column(f.name), f.type) if f.name in held else pa.nulls(len(table), f.type) for f in fields
    ]
    return pa.table([*table.columns[:2], *columns], names=[ROW, TIME, *(f.name for f in fields)])


def _common_type(tables: Sequence[pa.Table], name: str) -> pa.DataType:
    columns = [t.column(name) for t in tables if name in t.column_names]
    types = [c.type for c in columns if c.null_count < len(c)] or [c.type for c in columns]
    return reduce(_wider, types)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other:
        return one
    if JSON_TYPE in (one, other):
        return JSON_TYPE
    if LIST_TYPE in (one, other):
        return LIST_TYPE
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def _as_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), wanted)
    if wanted == JSON_TYPE:
        texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in column.to_pylist()]
        return pa.array(texts, pa.string()).cast(JSON_TYPE)
    if wanted == LIST_TYPE:
        held = column.cast(pa.string()).to_pylist()
        return pa.array([None if v is None else [v] for v in held], LIST_TYPE)
    return column.cast(wanted)
