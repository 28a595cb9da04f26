"""Rows of the same time and dimensions become one, with their metrics summed up: records, or rows made of them before.

It comes last, when it is known which records are stored: what was merged can't be taken apart again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.rows import as_floats
from ingestion.segments.table_shape import Integers, Shape, flat, int64s, sorted_order
from ingestion.specs.schema.data_schema import EXTENTS

_FIRST_TIME, _FIRST_ORDER, _LAST_TIME, _LAST_ORDER = range(1, 1 + len(EXTENTS))
_EXTREMES: dict[str, dict[pa.DataType, Any]] = {
    "min": {pa.int64(): np.iinfo(np.int64).max, pa.float64(): np.inf},
    "max": {pa.int64(): np.iinfo(np.int64).min, pa.float64(): -np.inf},
    "sum": {pa.int64(): 0, pa.float64(): 0.0},
}
_REDUCERS: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "sum": np.add, "count": np.add}


def roll_up(rows: pa.Table, shape: Shape) -> pa.Table:
    """The rows, sorted, one for each time and dimensions; also of rows that this function gave before."""
    columns = [flat(c) for c in rows.columns]
    table = pa.table(columns, names=rows.column_names)
    keys = shape.keys(table)
    first_extent = [table.column(_FIRST_TIME), table.column(_FIRST_ORDER)] if shape.has_extents else []
    order = sorted_order([*keys, *first_extent])
    if order is None:
        return table
    groups = _Groups.of(keys, order)
    lasts = groups.last_rows(int64s(columns[_LAST_TIME]), int64s(columns[_LAST_ORDER])) if shape.has_extents else None
    merged = [
        _record_lists(columns[0], groups),
        *(c.take(pa.array(groups.firsts)) for c in columns[1 : shape.lead + 1]),
    ]
    if lasts is not None:
        merged[_LAST_TIME], merged[_LAST_ORDER] = (columns[i].take(pa.array(lasts)) for i in (_LAST_TIME, _LAST_ORDER))
    for name, column in zip(rows.column_names[shape.lead + 1 :], columns[shape.lead + 1 :], strict=True):
        if name in shape.sketches:
            merged.append(shape.sketches[name].merged(column.take(pa.array(groups.order)), groups.starts))
            continue
        value = _reduced_column(column, shape.aggregations.get(name, "first"), groups, lasts)
        merged.append(as_floats(value) if name in shape.float_sums else value)
    return pa.table(merged, names=rows.column_names)


@dataclass(frozen=True)
class _Groups:
    """``order`` brings together what becomes one row, as it happened; in it, groups begin at ``starts``."""

    order: Integers
    starts: Integers

    @classmethod
    def of(cls, keys: list[pa.ChunkedArray], order: Integers) -> _Groups:
        changes = np.zeros(len(order) - 1, np.bool_)
        for key in keys:
            changes |= _changes(flat(key).take(pa.array(order)))
        return cls(order, np.append(0, np.flatnonzero(changes) + 1))

    @property
    def firsts(self) -> Integers:
        return self.order[self.starts]

    def last_rows(self, times: Integers, orders: Integers) -> Integers:
        """Of each group the row that holds the last record."""
        ends = np.append(self.starts[1:], len(self.order))
        group = np.repeat(np.arange(len(self.starts)), ends - self.starts)
        by_last = np.lexsort((orders[self.order], times[self.order], group))
        lasts: Integers = self.order[by_last[ends - 1]]
        return lasts


def _changes(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether each value but the first is another than the one before it; null is null, and NaN is NaN."""
    before, after = column.slice(0, len(column) - 1), column.slice(1)
    changed = _to_bools(pc.not_equal(before, after).fill_null(False))
    if column.null_count:
        changed |= _to_bools(before.is_valid()) != _to_bools(after.is_valid())
    if pa.types.is_floating(column.type):
        changed &= ~(_to_bools(pc.is_nan(before).fill_null(False)) & _to_bools(pc.is_nan(after).fill_null(False)))
    return changed


def _to_bools(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)


def _record_lists(lists: pa.ListArray, groups: _Groups) -> pa.ListArray:
    """All records of each group."""
    in_order = lists.take(pa.array(groups.order))
    ends = in_order.offsets.to_numpy()
    return pa.ListArray.from_arrays(pa.array(np.append(ends[groups.starts], ends[-1]), pa.int32()), in_order.values)


def _reduced_column(column: pa.Array, how: str, groups: _Groups, lasts: Integers | None) -> pa.Array:
    """A metric's values, or with ``first`` also a dimension's."""
    if how == "first":
        return column.take(pa.array(groups.firsts))
    if how == "last":
        return column.take(pa.array(lasts))
    in_order = column.take(pa.array(groups.order))
    valid = _to_bools(in_order.is_valid())
    if how == "any":
        return in_order.take(_first_valid_rows(valid, groups.starts))
    nothing = _EXTREMES["sum" if how == "count" else how][column.type]
    numbers = in_order.fill_null(nothing).to_numpy(zero_copy_only=False)
    # As in Druid, whole numbers wrap around when a sum is too great for them.
    reduced = _REDUCERS[how].reduceat(numbers, groups.starts)
    return pa.array(reduced, column.type, mask=~np.logical_or.reduceat(valid, groups.starts))


def _first_valid_rows(valid: npt.NDArray[np.bool_], starts: Integers) -> pa.Array:
    """Of each group the place of the first value that is not null; null if there is none."""
    places = np.where(valid, np.arange(len(valid)), len(valid))
    first = np.minimum.reduceat(places, starts)
    return pa.array(first, pa.int64(), mask=first == len(valid))
