"""Sorted rows to segment files."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.encoding import mostly_distinct, parquet_options
from ingestion.segments.errors import DamagedSegment, DeepStorageError, SegmentError, storage_error
from ingestion.segments.intervals import Interval, split_by_interval, to_datetime
from ingestion.segments.local import LocalStorage
from ingestion.segments.names import iso, segment_path
from ingestion.segments.reader import verify
from ingestion.segments.record_positions import RecordPositions, RecordSet
from ingestion.segments.table_shape import Shape
from ingestion.sketches.types import SketchType
from ingestion.specs.messages.protocol import Column, SegmentFile
from ingestion.specs.offsets import Range
from ingestion.specs.schema.data_schema import EXTENTS, DataSchema
from ingestion.specs.schema.index_spec import IndexSpec

_GROUP_ROWS = 131_072  # of a Parquet row group, which is held in memory until it is written
GROUP_BYTES = 16 * 1024 * 1024
_STORERS = 4  # they mostly wait for the disk


@dataclass(frozen=True)
class Target:
    """What is written, and where to."""

    schema: DataSchema
    version: str
    storage: DeepStorage
    scratch: Path  # a folder for files on their way; none stays
    max_rows_per_segment: int
    index_spec: IndexSpec
    ids: ColumnIds


def write_rows(tables: Iterable[pa.Table], places: RecordPositions, target: Target) -> list[SegmentFile]:
    """Write rows that come sorted, in this package's shape, one file for each interval and ``max_rows_per_segment``.

    The offsets of a file are those of all records in it. Returns the files in the order of time; no rows, no files.
    Raises ``DeepStorageError``, after which some files may have been stored: they are orphans, as nobody has heard of
    them; and what asking for ids does, then before any was.
    """
    shape = Shape.of(target.schema)
    chosen = RecordSet(places)
    storing = _StoreQueue(target.storage)
    file: _OpenSegment | None = None
    try:
        for rows, interval in _split_rows(tables, shape, target):
            if file is None or file.interval != interval or file.rows == target.max_rows_per_segment:
                if file is not None:
                    storing.begin(file, file.finished(chosen.ranges()))
                file = storing.discarding_later(_OpenSegment(interval, target, shape))
            file.add(rows)
            chosen.add(shape.records(rows))
        return [] if file is None else storing.ended(file, file.finished(chosen.ranges()))
    finally:
        storing.close()


def write_interval(tables: Iterable[pa.Table], interval: Interval, shape: Shape, target: Target) -> list[SegmentFile]:
    """Write rows of one interval that come sorted, as segments hold them, ``max_rows_per_segment`` a file.

    The files tell no offsets: their rows were published before. No rows, no files. Raises ``DeepStorageError``.
    """
    storing = _StoreQueue(target.storage)
    file: _OpenSegment | None = None
    try:
        for table in tables:
            start = 0
            while start < len(table):
                if file is None or file.rows == target.max_rows_per_segment:
                    if file is not None:
                        storing.begin(file, file.finished({}))
                    file = storing.discarding_later(_OpenSegment(interval, target, shape))
                size = min(target.max_rows_per_segment - file.rows, len(table) - start)
                file.add(table.slice(start, size))
                start += size
        return [] if file is None else storing.ended(file, file.finished({}))
    finally:
        storing.close()


def _split_rows(tables: Iterable[pa.Table], shape: Shape, target: Target) -> Iterator[tuple[pa.Table, Interval]]:
    """The rows cut at the ends of intervals, and where a file of the interval has as many rows as it may."""
    current: Interval | None = None
    room = 0
    for table in tables:
        for interval, part in split_by_interval(shape.times(table), target.schema.granularitySpec.segmentGranularity):
            start = part.start
            while start < part.stop:
                if interval != current or not room:
                    current, room = interval, target.max_rows_per_segment
                size = min(room, part.stop - start)
                yield table.slice(start, size), interval
                start, room = start + size, room - size


class _OpenSegment:
    """A segment on its way: rows gather to row groups in memory, and those in a file in the scratch folder."""

    def __init__(self, interval: Interval, target: Target, shape: Shape) -> None:
        self.interval = interval
        self.rows = 0
        self.path = segment_path(target.schema.dataSource, interval, target.version, uuid.uuid4())
        self.local = target.scratch / Path(self.path).name
        self._target = target
        self._shape = shape
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._columns: list[Column] = []
        self._extents = False
        self._bounds: list[np.int64] = []

    def add(self, rows: pa.Table) -> None:
        """Take in rows that come after those before."""
        ms = self._shape.times(rows)
        self._bounds = [*self._bounds[:1], ms[0], ms[-1]]
        stored = self._shape.stored(rows)
        self._waiting.append(stored)
        self._waiting_rows += len(rows)
        self._waiting_bytes += stored.nbytes
        self.rows += len(rows)
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._write_group()

    def finished(self, offsets: dict[int, list[Range]]) -> SegmentFile:
        """Write the rest; what is to be registered once it is stored."""
        self._write_group()
        size_bytes, sha256 = self._closed()
        return SegmentFile(
            path=self.path,
            interval_start=self.interval[0],
            interval_end=self.interval[1],
            rows=self.rows,
            size_bytes=size_bytes,
            sha256=sha256,
            min_time=to_datetime(self._bounds[0]),
            max_time=to_datetime(self._bounds[-1]),
            columns=self._columns,
            extents=self._extents,
            offsets=offsets,
        )

    def discard(self) -> None:
        """Remove what is in the scratch folder."""
        if self._writer is not None and self._writer.is_open:
            with suppress(OSError):
                self._writer.close()
        with suppress(FileNotFoundError):
            self.local.unlink()

    def _write_group(self) -> None:
        if not self._waiting:
            return
        group = pa.concat_tables(self._waiting)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        try:
            self._writer = self._writer or self._opened(group)
            self._writer.write_table(group, len(group))
            del group
            pa.default_memory_pool().release_unused()
        except OSError as error:
            raise self._refused(error) from error

    def _opened(self, group: pa.Table) -> pq.ParquetWriter:
        """``group``: the first one, by which the encoding of all is chosen. Raises what asking for ids does."""
        self._target.scratch.mkdir(parents=True, exist_ok=True)
        about = {
            "headgate.datasource": self._target.schema.dataSource,
            "headgate.interval": f"{iso(self.interval[0])}/{iso(self.interval[1])}",
            "headgate.version": self._target.version,
        }
        self._columns = columns_of(group.schema)
        self._extents = EXTENTS[0] in group.schema.names
        marked = self._target.ids.marked(group.schema, self._columns)
        metrics = (*self._shape.aggregations, *EXTENTS)
        options = parquet_options(self._target.index_spec, group.schema, metrics, mostly_distinct(group))
        writer = pq.ParquetWriter(self.local, marked, store_schema=False, **options)
        writer.add_key_value_metadata({**about, **_arrow_metadata(group.schema)})
        return writer

    def _closed(self) -> tuple[int, str]:
        """Size and hash of the file."""
        try:
            if self._writer is not None:
                self._writer.close()
            with self.local.open("rb") as file:
                return self.local.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> DeepStorageError:
        return storage_error(f"write a segment to the scratch folder {self._target.scratch}", error)


def _arrow_metadata(schema: pa.Schema) -> dict[str, str]:
    """What Arrow needs to read its own types again, as it would write it, but without ids: they are in Parquet's own
    schema, and here each would take 70 bytes.
    """
    return {"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes()).decode()}


class _StoreQueue:
    """Puts files into deep storage beside what is written next; the last one where it is waited for."""

    def __init__(self, storage: DeepStorage) -> None:
        self._storage = storage
        self._files: list[_OpenSegment] = []
        self._started: list[Future[SegmentFile]] = []
        self._pool: ThreadPoolExecutor | None = None

    def discarding_later(self, file: _OpenSegment) -> _OpenSegment:
        """Take care that nothing stays of it in the scratch folder."""
        self._files.append(file)
        return file

    def begin(self, file: _OpenSegment, segment_file: SegmentFile) -> None:
        """Store a file that is finished. Raises what storing an earlier one has met."""
        self._pool = self._pool or ThreadPoolExecutor(_STORERS, thread_name_prefix="segment-storer")
        self._started.append(self._pool.submit(self._store, file, segment_file))
        for future in self._started:
            if future.done():
                future.result()

    def ended(self, last: _OpenSegment, segment_file: SegmentFile) -> list[SegmentFile]:
        """Store the last one; all that were stored, in the order they were begun."""
        stored = self._store(last, segment_file)
        return [*(future.result() for future in self._started), stored]

    def close(self) -> None:
        """Wait for what has begun; begin nothing more."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        for file in self._files:
            file.discard()

    def _store(self, file: _OpenSegment, segment_file: SegmentFile) -> SegmentFile:
        self._storage.put(file.local, file.path)
        if isinstance(self._storage, LocalStorage):  # over a network every byte would travel twice
            _check_stored(self._storage, segment_file)
        file.discard()
        return segment_file


def _check_stored(storage: DeepStorage, segment_file: SegmentFile) -> None:
    """Read what was stored. Raises ``DeepStorageError``, not permanent, if it is not what was written."""
    try:
        verify(storage, segment_file)
    except DamagedSegment as error:
        raise DeepStorageError(f"the stored file differs from the written one: {error}", permanent=False) from error


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns' names and types as a segment's row tells them, without the hidden ones.

    Raises ``SegmentError`` for any other type.
    """
    return [Column(name=field.name, type=_column_type(field.type)) for field in schema if field.name not in EXTENTS]


def _column_type(arrow: pa.DataType) -> Any:
    if isinstance(arrow, pa.JsonType):
        return "json"
    if isinstance(arrow, SketchType):
        return arrow.kind
    type_names = {
        pa.string(): "string",
        pa.int64(): "long",
        pa.float64(): "double",
        pa.list_(pa.string()): "strings",
        pa.bool_(): "boolean",
        pa.timestamp("ms", "UTC"): "timestamp",  # of rows, and of files of earlier versions
        pa.timestamp("us", "UTC"): "timestamp",
    }
    if arrow not in type_names:
        raise SegmentError(f"a column of type {arrow} can't be stored")
    return type_names[arrow]
