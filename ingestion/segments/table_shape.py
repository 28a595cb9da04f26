"""Rows on their way to a segment, from the decoder to the last merge: which columns a table of them has.

Column 0 says which records became the row, by number: an int64, or with rollup a list of them. With rollup, if a metric
is the first or last of something, four more follow (int64): time and order of the first record, then of the last. The
segment holds them too, after everything else, so that its rows can become fewer again.
Then come ``__time`` and what else the segment holds; what is no metric is a dimension.

Rows are sorted by time, then by the dimensions in their order; nulls come last. JSON and lists have no order of their
own: with rollup, when everything else is the same, their texts decide. Without rollup it is the number of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.rows import LIST_TYPE, RECORD_TIME, Columns
from ingestion.sketches.merging import Merger
from ingestion.specs.schema.data_schema import EXTENTS, DataSchema
from ingestion.specs.schema.metrics import unfiltered_metric
from ingestion.specs.schema.sketch_metrics import SketchMetric

Integers = npt.NDArray[np.int64]
RECORDS = "records"


@dataclass(frozen=True)
class Shape:
    """How rows become fewer: whether, by which columns, and what is done with each metric."""

    rollup: bool
    aggregations: Mapping[str, str]  # a metric's name → what is done with it
    lead: int  # how many columns come before ``__time``
    float_sums: frozenset[str] = frozenset()  # metrics
    sketches: Mapping[str, Merger] = field(default_factory=dict)  # by metric

    @classmethod
    def of(cls, schema: DataSchema) -> Shape:
        rollup = schema.granularitySpec.rollup
        how = {m.name: m.aggregation for m in schema.metricsSpec}
        extents = rollup and not {"first", "last"}.isdisjoint(how.values())
        float_sums = frozenset(m.name for m in schema.metricsSpec if m.kind == "float" and m.aggregation == "sum")
        return cls(rollup, how, 1 + len(EXTENTS) if extents else 1, float_sums, mergers_of(schema))

    @property
    def has_extents(self) -> bool:
        return self.lead > 1

    def to_shape(self, rows: pa.Table, came: int = 0) -> pa.Table:
        """Decoded rows, column 0 the records' numbers, in this shape; neither merged nor sorted.

        ``first_record``: the record number 0 in the order of all records. Rows of segments may bring their own extents.
        """
        records = int64s(rows.column(0))
        decoded = rows.select([i for i, f in enumerate(rows.schema) if not is_hidden(f)])
        columns, names = decoded.columns[1:], decoded.column_names[1:]
        if not self.rollup:
            return pa.table([pa.array(records), *columns], names=[RECORDS, *names])
        lead = [_lists_of_one(records)]
        if self.has_extents:
            lead += _extents(rows, records + came)
        return pa.table([*lead, *columns], names=[RECORDS, *EXTENTS[: self.lead - 1], *names])

    def fields(self, columns: Columns) -> list[pa.Field]:
        """Those of decoded rows that a segment holds after ``__time``."""
        return [f for f in columns.fields if not is_hidden(f)]

    def keys(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """The columns by which rows are sorted, the number of the record aside."""
        after = self.lead + 1
        named = zip(rows.column_names[after:], rows.columns[after:], strict=True)
        dimensions = [column for name, column in named if name not in self.aggregations]
        ordered = [c for c in dimensions if not _has_no_order(c.type)]
        texts = [_sortable_text(c) for c in dimensions if _has_no_order(c.type)] if self.rollup else []
        return [rows.column(self.lead), *ordered, *texts]

    def records(self, rows: pa.Table) -> Integers:
        """The numbers of all records in these rows, in the order of the rows."""
        column = rows.column(0)
        return int64s(pc.list_flatten(column) if self.rollup else column)

    def times(self, rows: pa.Table) -> Integers:
        """Milliseconds since 1970."""
        return int64s(rows.column(self.lead).cast(pa.int64()))

    def stored(self, rows: pa.Table) -> pa.Table:
        """What the segment holds of them: the extents last."""
        return rows.select([*range(self.lead, rows.num_columns), *range(1, self.lead)])


def mergers_of(schema: DataSchema) -> dict[str, Merger]:
    """How the values of metrics that are sketches become one, by name."""
    metrics = {m.name: unfiltered_metric(m) for m in schema.metricsSpec}
    return {name: Merger.of(metric) for name, metric in metrics.items() if isinstance(metric, SketchMetric)}


def sorted_order(keys: list[pa.ChunkedArray]) -> Integers | None:
    """The order of rows by these columns, the first of which are times; equal ones stay in order. None: as they are."""
    times = int64s(keys[0].cast(pa.int64()))
    if not len(times) or bool((times[1:] > times[:-1]).all()):
        return None
    # Dimensions may be called anything, twice the same too.
    names = [f"k{i}" for i in range(len(keys))]
    order = pc.sort_indices(pa.table(keys, names=names), sort_keys=[(name, "ascending") for name in names])
    return int64s(order)


def flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def int64s(column: pa.Array | pa.ChunkedArray) -> Integers:
    return np.asarray(column.to_numpy(), np.int64)


def _extents(rows: pa.Table, order: Integers) -> list[pa.Array]:
    """Those that rows bring, and where they bring none that of one record."""
    times = _record_times(rows)
    computed = [pa.array(column) for column in (times, order, times, order)]
    if EXTENTS[0] not in rows.column_names:
        return computed
    return [pc.coalesce(flat(rows.column(name)), default) for name, default in zip(EXTENTS, computed, strict=True)]


def _record_times(rows: pa.Table) -> Integers:
    """When records happened, which is not the row's time where that was cut."""
    at = _record_time_index(rows)
    return int64s(rows.column(1 if at is None else at).cast(pa.int64()))


def _record_time_index(rows: pa.Table) -> int | None:
    """Which column it is: the one of that name that holds times; no dimension does."""
    return next((i for i, f in enumerate(rows.schema) if _is_record_time(f)), None)


def _is_record_time(field: pa.Field) -> bool:
    return bool(field.name == RECORD_TIME and pa.types.is_timestamp(field.type))


def is_hidden(field: pa.Field) -> bool:
    """Whether it is no column of the records'."""
    return field.name in EXTENTS or _is_record_time(field)


def _lists_of_one(records: Integers) -> pa.ListArray:
    return pa.ListArray.from_arrays(np.arange(len(records) + 1, dtype=np.int32), pa.array(records))


def _has_no_order(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) or bool(kind == LIST_TYPE)


def _sortable_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """JSON as it is written, lists as Python writes them."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([c.storage for c in column.chunks], pa.string())
    return pa.chunked_array([[None if v is None else repr(v) for v in column.to_pylist()]], pa.string())
