"""Rows of the same time and dimensions become one, with their metrics summed up: best effort, within one batch.

It comes last, when it is known which records are stored: what was merged can't be taken apart again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.specs import DataSchema

TIME = "__time"
RECORD_TIME = "__record_time"
Integers = npt.NDArray[np.int64]
_MOST_GROUPS = 2**62
_EXTREMES: dict[str, dict[pa.DataType, Any]] = {
    "min": {pa.int64(): np.iinfo(np.int64).max, pa.float64(): np.inf},
    "max": {pa.int64(): np.iinfo(np.int64).min, pa.float64(): -np.inf},
    "sum": {pa.int64(): 0, pa.float64(): 0.0},
}
_REDUCERS: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "sum": np.add, "count": np.add}


@dataclass(frozen=True)
class RolledUp:
    """``rows``: the table without record times; column 0 is a record of each row. ``row_of``: every record's row."""

    rows: pa.Table
    records: Integers
    row_of: Integers


def unrolled(rows: pa.Table) -> RolledUp:
    """Every record a row of its own."""
    records = _numbers(rows.column(0))
    return RolledUp(_without_record_time(rows), records, np.arange(len(rows)))


def rolled_up(rows: pa.Table, schema: DataSchema) -> RolledUp:
    """``rows`` is ``Decoded.rows``, one a record. What is no metric is a dimension."""
    how = {m.name: m.how for m in schema.metricsSpec}
    table = rows.combine_chunks()
    plain = _without_record_time(table)
    # Column 0 is the records' index; its name may be a dimension's too.
    columns = [flat(c) for c in plain.columns]
    names = plain.column_names
    keys = [c for i, c in enumerate(columns) if i > 0 and names[i] not in how]
    order, starts = _groups(keys, _record_times(table))
    records = _numbers(columns[0])
    firsts = order[starts]
    merged = [
        _summed(column, how[name], order, starts) if i > 0 and name in how else column.take(pa.array(firsts))
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
    ]
    sizes = np.diff(np.append(starts, len(order)))
    return RolledUp(pa.table(merged, names=names), records[order], np.repeat(np.arange(len(starts)), sizes))


def flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _record_time_at(rows: pa.Table) -> int | None:
    """Which column it is: the one of that name that holds times; no dimension does."""
    return next((i for i, f in enumerate(rows.schema) if f.name == RECORD_TIME and pa.types.is_timestamp(f.type)), None)


def _without_record_time(rows: pa.Table) -> pa.Table:
    at = _record_time_at(rows)
    return rows if at is None else rows.remove_column(at)


def _record_times(rows: pa.Table) -> Integers:
    """When records happened: their order in a row, for what was first and last."""
    at = _record_time_at(rows)
    return _numbers(rows.column(1 if at is None else at).cast(pa.int64()))


def _numbers(column: pa.Array | pa.ChunkedArray) -> Integers:
    return np.asarray(column.to_numpy(), np.int64)


def _groups(keys: list[pa.Array], times: Integers) -> tuple[Integers, Integers]:
    """The order that brings equal keys together, in each group by time; and where groups start in it."""
    codes = np.zeros(len(times), np.int64)
    count = 1
    for key in keys:
        more, kinds = _codes(key)
        if count * kinds > _MOST_GROUPS:
            found, codes = np.unique(codes, return_inverse=True)
            count = len(found)
        codes = codes * kinds + more
        count *= kinds
    order = np.lexsort((times, codes))
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    return order, np.concatenate(([0], edges)).astype(np.int64) if len(order) else edges


def _codes(key: pa.Array) -> tuple[Integers, int]:
    """A number for each value, null too, and how many numbers there are."""
    if isinstance(key, pa.ExtensionArray):
        key = key.storage
    if pa.types.is_list(key.type):
        key = pa.array([None if v is None else repr(v) for v in key.to_pylist()], pa.string())
    encoded = key.dictionary_encode()
    return np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64) + 1, len(
        encoded.dictionary
    ) + 1


def _summed(column: pa.Array, how: str, order: Integers, starts: Integers) -> pa.Array:
    if how in ("first", "last"):
        ends = np.append(starts[1:], len(order))
        return column.take(pa.array(order[starts if how == "first" else ends - 1]))
    held = column.take(pa.array(order))
    valid = np.asarray(held.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    if how == "any":
        return column.take(_first_valid(valid, order, starts))
    nothing = _EXTREMES["sum" if how == "count" else how][column.type]
    numbers = held.fill_null(nothing).to_numpy(zero_copy_only=False)
    if not len(starts):
        return column
    # As in Druid, whole numbers wrap around when a sum is too great for them.
    found = _REDUCERS[how].reduceat(numbers, starts)
    return pa.array(found, column.type, mask=~np.logical_or.reduceat(valid, starts))


def _first_valid(valid: npt.NDArray[np.bool_], order: Integers, starts: Integers) -> pa.Array:
    """Of each group the place of the first value that is not null; null if there is none."""
    places = np.where(valid, np.arange(len(order)), len(order))
    found = np.minimum.reduceat(places, starts) if len(starts) else places
    none = found == len(order)
    return pa.array(order[np.where(none, 0, found)] if len(order) else found, pa.int64(), mask=none)
