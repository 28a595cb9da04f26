"""The rows of segments under one schema, a batch at a time, each file checked against what was registered of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingestion.rows import JSON_TYPE, LIST_TYPE, TIME_TYPE, Columns, conform
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.errors import DamagedSegment, SegmentError, storage_error
from ingestion.segments.reader import open_verified
from ingestion.sketches.types import SKETCH_TYPES
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import Column
from ingestion.specs.schema.data_schema import EXTENTS

_LEAD_COLUMNS = 1  # a segment's first column is its rows' time
_BATCH_ROWS = 32_768
_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "strings": LIST_TYPE,
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": TIME_TYPE,
    "json": JSON_TYPE,
    **SKETCH_TYPES,
}


def unify_schemas(schemas: Sequence[Sequence[Column]]) -> list[pa.Field]:
    """The columns after ``__time`` of segments with these schemas, each in the type that holds what all hold."""
    columns = Columns()
    for schema in schemas:
        columns.add(pa.schema([(c.name, _TYPES[c.type]) for c in schema]).empty_table(), _LEAD_COLUMNS)
    return columns.fields


class LacksExtents(SegmentError):
    """Rows of a segment say nothing of what makes a record the first or the last."""

    permanent = True


class Inputs:
    """Reads segments one after the other, and counts: rows by segment, and the sums of ``counts``, whole numbers.

    A batch has the columns ``c0`` (the time, an integer in the unit of ``TIME_TYPE``), then ``c1``, ``c2``, … as
    ``fields``: names may differ in case alone, or be anything. JSON is text, sketches are bytes.
    """

    def __init__(
        self, storage: DeepStorage, segments: Sequence[InputSegment], fields: Sequence[pa.Field], counts: Sequence[str]
    ) -> None:
        self._storage = storage
        self._segments = segments
        self._fields = list(fields)
        self._extents = {f.name for f in fields}.intersection(EXTENTS)
        self._places = {f.name: 1 + i for i, f in enumerate(fields) if f.name in counts}
        self.rows: dict[UUID, int] = {}
        self.sums: Counter[str] = Counter()
        self.problem: SegmentError | None = None  # that ended the reading; DuckDB wraps it

    @property
    def schema(self) -> pa.Schema:
        """That of the batches."""
        return pa.schema(
            [("c0", pa.int64()), *((f"c{i}", _storage_type(f.type)) for i, f in enumerate(self._fields, 1))]
        )

    def reader(self) -> pa.RecordBatchReader:
        """All rows, once. While it is read, ``problem`` may come."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._of_files()
        except SegmentError as error:
            self.problem = error
            raise

    def _of_files(self) -> Iterator[pa.RecordBatch]:
        for segment in self._segments:
            rows = 0
            with open_verified(self._storage, segment) as opened:
                try:
                    file = pq.ParquetFile(opened)
                    self._check_extents(file.schema_arrow, segment)
                    for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                        rows += len(batch)
                        yield from self._shaped(batch)
                except pa.ArrowException as error:
                    raise DamagedSegment(f"{segment.path} can't be read as Parquet: {error}") from error
                except OSError as error:
                    raise storage_error(f"read {segment.path}", error) from error
            self.rows[segment.id] = rows

    def _check_extents(self, columns: pa.Schema, segment: InputSegment) -> None:
        if not self._extents.issubset(columns.names):
            raise LacksExtents(
                f"{segment.path} does not have the times of its first and last values, because it was written by an "
                "earlier version or without rollup. Its rows can't be rolled up again"
            )

    def _shaped(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = conform(pa.Table.from_batches([batch]), self._fields, _LEAD_COLUMNS)
        for name, column_index in self._places.items():
            self.sums[name] += pc.sum(rows.column(column_index)).as_py() or 0
        time = rows.column(0).cast(TIME_TYPE).cast(pa.int64())
        others = [_without_extension(c) for c in rows.columns[1:]]
        yield from pa.table([time, *others], schema=self.schema).to_batches()


def _storage_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _without_extension(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
