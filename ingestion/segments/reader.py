"""Reading segments back, and checking that they are what was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.rows import TIME, TIME_TYPE, Columns, conform
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.errors import DamagedSegment, storage_error
from ingestion.specs.schema.data_schema import EXTENTS

IN_MEMORY_BYTES = 16 * 1024 * 1024  # a file up to this size is read once: checked and decoded
_CHUNK = 1024 * 1024
_LEAD = 1  # a segment's first column is its rows' time


class Registered(Protocol):
    """What is known of a file; ``sha256`` in hexadecimal digits."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def sha256(self) -> str: ...


def read_segment(storage: DeepStorage, path: str) -> pa.Table:
    """All rows of a segment file, without the hidden columns.

    Raises ``DeepStorageError``, or ``DamagedSegment`` if it is no Parquet file.
    """
    with storage.open(path) as file:
        try:
            rows = pq.read_table(file)
            return rows.select([i for i, name in enumerate(rows.column_names) if name not in EXTENTS])
        except pa.ArrowException as error:
            raise DamagedSegment(f"{path} can't be read as Parquet: {error}") from error


def read_segments(storage: DeepStorage, paths: Sequence[str]) -> pa.RecordBatchReader:
    """The rows of these segments one after the other, each column in the type that holds what it holds in all of them.

    Hidden columns are left out. A segment without a column has nulls there. Schemas are read at once, rows a batch at a
    time while the reader is read. Raises ``DeepStorageError`` or ``DamagedSegment``, then too.
    """
    columns = Columns()
    for path in paths:
        with _open_parquet(storage, path) as file:
            columns.add(file.schema_arrow.empty_table(), _LEAD)
    fields = [f for f in columns.fields if f.name not in EXTENTS]
    schema = pa.schema([(TIME, TIME_TYPE), *((f.name, f.type) for f in fields)])
    return pa.RecordBatchReader.from_batches(schema, _batches(storage, paths, fields))


def _batches(storage: DeepStorage, paths: Sequence[str], fields: list[pa.Field]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with _open_parquet(storage, path) as file:
            for batch in file.iter_batches():
                rows = pa.Table.from_batches([batch])
                times = rows.column(0).cast(TIME_TYPE)  # of files of any version
                yield from conform(rows.set_column(0, TIME, times), fields, _LEAD).to_batches()


@contextmanager
def _open_parquet(storage: DeepStorage, path: str) -> Iterator[pq.ParquetFile]:
    with storage.open(path) as opened:
        try:
            yield pq.ParquetFile(opened)
        except pa.ArrowException as error:
            raise DamagedSegment(f"{path} can't be read as Parquet: {error}") from error


def verify(storage: DeepStorage, segment: Registered) -> None:
    """Check that the file exists with its size and hash. Raises ``DamagedSegment`` if not, or ``DeepStorageError``."""
    check_size(storage, segment)
    _check_sha256(segment, _sha256(storage, segment.path))


def open_verified(storage: DeepStorage, segment: Registered) -> BinaryIO:
    """Open a file for reading, once it is verified. Raises what ``verify`` does."""
    if segment.size_bytes <= IN_MEMORY_BYTES:
        return cast("BinaryIO", pa.BufferReader(read_verified(storage, segment)))
    verify(storage, segment)
    return storage.open(segment.path)


def read_verified(storage: DeepStorage, segment: Registered) -> bytes:
    """The content of a small file, in as few requests as can be. Raises what ``verify`` does."""
    _check_exists(storage, segment)
    with storage.open(segment.path) as file:
        try:
            content = file.read(segment.size_bytes + 1)
        except OSError as error:
            raise storage_error(f"read {segment.path}", error) from error
    if len(content) != segment.size_bytes:
        check_size(storage, segment)
    _check_sha256(segment, hashlib.sha256(content).hexdigest())
    return content


def check_size(storage: DeepStorage, segment: Registered) -> None:
    """Check that the file exists with its size. Raises what ``verify`` does."""
    _check_exists(storage, segment)
    size_bytes = storage.size(segment.path)
    if size_bytes != segment.size_bytes:
        raise DamagedSegment(f"{segment.path} has {size_bytes} bytes, not {segment.size_bytes}")


def _check_exists(storage: DeepStorage, segment: Registered) -> None:
    if not storage.exists(segment.path):
        raise DamagedSegment(f"{segment.path} does not exist")


def _check_sha256(segment: Registered, sha256: str) -> None:
    if sha256 != segment.sha256:
        raise DamagedSegment(f"{segment.path} has the SHA-256 {sha256}, not {segment.sha256}")


def _sha256(storage: DeepStorage, path: str) -> str:
    digest = hashlib.sha256()
    with storage.open(path) as file:
        try:
            while part := file.read(_CHUNK):
                digest.update(part)
        except OSError as error:
            raise storage_error(f"read {path}", error) from error
    return digest.hexdigest()
