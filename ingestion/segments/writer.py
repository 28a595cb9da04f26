"""Rows to segment files."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.encoding import TIME, parquet_options
from ingestion.segments.errors import SegmentError, storage_error
from ingestion.segments.names import iso, segment_path
from ingestion.segments.rollup import RolledUp, rolled_up, unrolled
from ingestion.specs import AnyGranularity, DataSchema, IndexSpec
from ingestion.specs.offsets import Range
from ingestion.specs.protocol import Column, SegmentFile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WRITERS = 4  # they mostly wait for the disk
_ALL_DEFAULTS = IndexSpec()

Integers = npt.NDArray[np.integer[Any]]


def write_segments(
    rows: pa.Table,
    partitions: Integers,
    offsets: Integers,
    *,
    schema: DataSchema,
    version: str,
    storage: DeepStorage,
    scratch: Path,
    max_rows_per_segment: int = 5_000_000,
    index_spec: IndexSpec = _ALL_DEFAULTS,
) -> list[SegmentFile]:
    """Write the rows of a decoded batch, one file for each segment interval and ``max_rows_per_segment`` rows.

    ``rows`` is ``Decoded.rows``: column 0 the payload index (not written), then ``__time`` and the dimensions.
    ``partitions`` and ``offsets`` give every payload's place in the topic, by payload index. Rows are sorted by time,
    then by the dimensions in their order (json and lists aside). With rollup equal ones become one first; the offsets
    of a file are those of all records in it. ``scratch`` is a folder for files on their way; none stays.

    Returns the files in the order of time; no rows, no files. Raises ``DeepStorageError``, after which some files may
    have been stored: they are orphans, as nobody has heard of them.
    """
    if not len(rows):
        return []
    metrics = tuple(m.name for m in schema.metricsSpec)
    batch = _Batch(schema.dataSource, version, storage, scratch, index_spec, metrics)
    merged = rolled_up(rows, schema) if schema.granularitySpec.rollup else unrolled(rows)
    order = _order(merged.rows)
    table = merged.rows.take(pa.array(order)).remove_column(0)
    records, first = _by_row(merged, order)
    places = (np.asarray(partitions)[records], np.asarray(offsets)[records])
    ms = table.column(TIME).cast(pa.int64()).to_numpy()

    def written(cut: tuple[Interval, slice]) -> SegmentFile:
        interval, part = cut
        piece = table.slice(part.start, part.stop - part.start)
        held = slice(first[part.start], first[part.stop])
        return batch.write(piece, ms[part], places[0][held], places[1][held], interval)

    cuts = list(_cuts(ms, schema.granularitySpec.segmentGranularity, max_rows_per_segment))
    if len(cuts) == 1:
        return [written(cuts[0])]
    with ThreadPoolExecutor(_WRITERS, thread_name_prefix="segment-writer") as pool:
        return list(pool.map(written, cuts))


Interval = tuple[datetime, datetime]


@dataclass(frozen=True)
class _Batch:
    datasource: str
    version: str
    storage: DeepStorage
    scratch: Path
    index_spec: IndexSpec
    metrics: tuple[str, ...]

    def write(
        self, table: pa.Table, ms: npt.NDArray[np.int64], partitions: Integers, offsets: Integers, interval: Interval
    ) -> SegmentFile:
        """Write and store one file of rows in the order of time."""
        path = segment_path(self.datasource, interval, self.version, uuid.uuid4())
        local = self.scratch / Path(path).name
        try:
            size_bytes, sha256 = self._write_local(table, local, interval)
            self.storage.put(local, path)
        finally:
            with suppress(FileNotFoundError):
                local.unlink()
        return SegmentFile(
            path=path,
            interval_start=interval[0],
            interval_end=interval[1],
            rows=len(table),
            size_bytes=size_bytes,
            sha256=sha256,
            min_time=_time(ms[0]),
            max_time=_time(ms[-1]),
            columns=columns_of(table.schema),
            offsets=offset_ranges(partitions, offsets),
        )

    def _write_local(self, table: pa.Table, local: Path, interval: Interval) -> tuple[int, str]:
        about = {
            "headgate.datasource": self.datasource,
            "headgate.interval": f"{iso(interval[0])}/{iso(interval[1])}",
            "headgate.version": self.version,
        }
        try:
            self.scratch.mkdir(parents=True, exist_ok=True)
            pq.write_table(
                table.replace_schema_metadata(about),
                local,
                **parquet_options(self.index_spec, table.schema, self.metrics),
            )
            data = local.read_bytes()
        except OSError as error:
            raise storage_error(f"write a segment to the scratch folder {self.scratch}", error) from error
        return len(data), hashlib.sha256(data).hexdigest()


def _order(rows: pa.Table) -> npt.NDArray[np.int64]:
    """Row order by time, then by the dimensions; dimensions get internal names, as theirs may be anything."""
    keys = [c for c in rows.columns[1:] if not isinstance(c.type, pa.BaseExtensionType | pa.ListType)]
    names = [f"k{i}" for i in range(len(keys))]
    order = pc.sort_indices(pa.table(keys, names=names), sort_keys=[(name, "ascending") for name in names])
    return np.asarray(order.to_numpy(), np.int64)


def _by_row(merged: RolledUp, order: npt.NDArray[np.int64]) -> tuple[Integers, Integers]:
    """The records in the order of the rows, and at which of them each row's begin (and the last one's end)."""
    if len(merged.records) == len(order):
        of_row = np.empty_like(merged.records)
        of_row[merged.row_of] = merged.records
        return of_row[order], np.arange(len(order) + 1)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rank = place[merged.row_of]
    counts = np.bincount(rank, minlength=len(order))
    return merged.records[np.argsort(rank, kind="stable")], np.concatenate(([0], np.cumsum(counts)))


def _cuts(ms: npt.NDArray[np.int64], granularity: AnyGranularity, most: int) -> Iterator[tuple[Interval, slice]]:
    """Each interval with the slices of its rows, ``ms`` ascending: one search for each interval, not each row."""
    start = 0
    while start < len(ms):
        interval = granularity.bucket(_time(ms[start]))
        end = int(np.searchsorted(ms, (interval[1] - _EPOCH) // _MILLISECOND))
        for first in range(start, end, most):
            yield interval, slice(first, min(first + most, end))
        start = end


def _time(ms: np.int64) -> datetime:
    return _EPOCH + timedelta(milliseconds=int(ms))


def offset_ranges(partitions: Integers, offsets: Integers) -> dict[int, list[Range]]:
    """The half-open offset ranges of each partition, as ``ingestion.specs.offsets.ranges_of`` gives them."""
    return {p: _ranges(np.sort(offsets[partitions == p])) for p in sorted(set(partitions.tolist()))}


def _ranges(offsets: Integers) -> list[Range]:
    gaps = np.flatnonzero(np.diff(offsets) > 1)
    starts = offsets[np.concatenate(([0], gaps + 1))]
    ends = offsets[np.concatenate((gaps, [len(offsets) - 1]))] + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns' names and types as a segment's row tells them. Raises ``SegmentError`` for any other type."""
    return [Column(name=field.name, type=_column_type(field.type)) for field in schema]


def _column_type(arrow: pa.DataType) -> Any:
    if isinstance(arrow, pa.JsonType):
        return "json"
    known = {
        pa.string(): "string",
        pa.int64(): "long",
        pa.float64(): "double",
        pa.list_(pa.string()): "strings",
        pa.bool_(): "boolean",
        pa.timestamp("ms", "UTC"): "timestamp",
    }
    if arrow not in known:
        raise SegmentError(f"a column of type {arrow} can't be stored")
    return known[arrow]
