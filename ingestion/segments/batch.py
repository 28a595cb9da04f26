"""The rows of one batch to segments, at once."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.intervals import count_by_interval
from ingestion.segments.memory_run import MemoryRun
from ingestion.segments.record_positions import Integers, RecordPositions
from ingestion.segments.table_shape import Shape, int64s
from ingestion.segments.writer import GROUP_BYTES, Target, write_rows
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.index_spec import IndexSpec

_ALL_DEFAULTS = IndexSpec()


def count_intervals(rows: pa.Table, schema: DataSchema) -> int:
    """How many segment intervals the rows of a decoded batch fall into."""
    return len(count_by_interval(int64s(rows.column(1).cast(pa.int64())), schema.granularitySpec.segmentGranularity)[0])


def write_segments(
    rows: pa.Table,
    partitions: Integers,
    offsets: Integers,
    *,
    schema: DataSchema,
    version: str,
    storage: DeepStorage,
    scratch: Path,
    ids: ColumnIds,
    max_rows_per_segment: int = 5_000_000,
    index_spec: IndexSpec = _ALL_DEFAULTS,
) -> list[SegmentFile]:
    """Write the rows of a decoded batch, one file for each segment interval and ``max_rows_per_segment`` rows.

    ``rows`` is ``Decoded.rows``: column 0 the payload index (not written), then ``__time`` and the dimensions.
    ``partitions`` and ``offsets`` give every payload's place in the topic, by payload index. With rollup equal rows
    become one first. For what is written, returned and raised see ``ingestion.segments.writer.write_rows``.
    """
    if not len(rows):
        return []
    places = RecordPositions()
    places.add(partitions, offsets)
    run = MemoryRun.of(rows, Shape.of(schema), time.time_ns())
    target = Target(schema, version, storage, scratch, max_rows_per_segment, index_spec, ids)
    return write_rows(run.blocks(run.fields, GROUP_BYTES), places, target)
