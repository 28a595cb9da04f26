"""Sorted runs of rows on local disk, which only the process that wrote them reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.rows import TIME, Columns, conform
from ingestion.segments.encoding import parquet_options
from ingestion.segments.errors import SegmentError, storage_error
from ingestion.segments.intervals import Interval, split_by_interval
from ingestion.segments.memory_run import block_rows
from ingestion.segments.table_shape import Shape
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.schema.periods import AnyGranularity

SPILL_COMPRESSION = IndexSpec(dimensionCompression="lz4", metricCompression="lz4", jsonCompression="lz4")


@dataclass(frozen=True, eq=False)
class SpilledRun:
    """Rows that wait on disk for their segment."""

    path: Path
    size_bytes: int
    schema: pa.Schema
    shape: Shape
    counts: Counter[Interval]  # its rows by interval
    columns: Columns  # those after ``__time``, and which of them hold nothing
    first_ms: int
    last_ms: int

    @property
    def rows(self) -> int:
        return self.counts.total()

    def blocks(self, fields: Sequence[pa.Field], most_bytes: int) -> Iterator[pa.Table]:
        """All rows, in the tables in which they were written. Raises ``SegmentError`` for a file that is not whole."""
        try:
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                if self.path.stat().st_size != self.size_bytes or file.metadata.num_rows != self.rows:
                    raise SegmentError(f"{self.path} was changed after it was written")
                for group in range(file.num_row_groups):
                    block = file.read_row_group(group, use_threads=False).rename_columns(self.schema.names)
                    yield conform(block.cast(self.schema), fields, self.shape.lead + 1)
        except (OSError, pa.ArrowException) as error:
            raise SegmentError(f"rows that were stored in {self.path} can't be read back: {error}") from error

    def delete(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()


@dataclass(frozen=True)
class Spiller:
    """Writes runs into a folder."""

    folder: Path
    shape: Shape
    granularity: AnyGranularity
    index_spec: IndexSpec
    block_bytes: int

    def spill(self, blocks: Iterable[pa.Table]) -> SpilledRun:
        """Write sorted rows, one at least. About ``block_bytes`` of them are later read at once.

        Raises ``DeepStorageError`` when the disk refuses; then there is no file.
        """
        path = self.folder / f"{uuid4().hex}.parquet"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return self._write_run(blocks, path)
        except BaseException as error:
            with suppress(OSError):
                path.unlink()
            if isinstance(error, OSError):
                raise storage_error(f"store rows in the scratch folder {self.folder}", error) from error
            raise

    def _write_run(self, blocks: Iterable[pa.Table], path: Path) -> SpilledRun:
        counts: Counter[Interval] = Counter()
        columns = Columns()
        ends: list[int] = []
        writer: pq.ParquetWriter | None = None
        try:
            for block in blocks:
                ms = self.shape.times(block)
                ends += [int(ms[0]), int(ms[-1])]
                counts.update({i: part.stop - part.start for i, part in split_by_interval(ms, self.granularity)})
                columns.add(block, self.shape.lead + 1)
                renamed = block.rename_columns(self._names(block))
                writer = writer or pq.ParquetWriter(path, renamed.schema, **self._options(block, renamed))
                writer.write_table(renamed, block_rows(renamed, self.block_bytes))
                pa.default_memory_pool().release_unused()
        finally:
            if writer is not None:
                writer.close()
        return SpilledRun(path, path.stat().st_size, block.schema, self.shape, counts, columns, ends[0], ends[-1])

    def _names(self, block: pa.Table) -> list[str]:
        """Names of our own, as those of the records may be anything."""
        return [TIME if i == self.shape.lead else f"c{i}" for i in range(block.num_columns)]

    def _options(self, block: pa.Table, renamed: pa.Table) -> dict[str, Any]:
        metrics = [
            new
            for old, new in zip(block.column_names, renamed.column_names, strict=True)
            if old in self.shape.aggregations
        ]
        # What is read once, and soon, is not worth dictionaries and statistics.
        options = parquet_options(self.index_spec, renamed.schema, metrics, renamed.column_names)
        return {**options, "write_page_checksum": True, "write_statistics": False}
