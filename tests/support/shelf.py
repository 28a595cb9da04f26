"""Deep storage with the segments of a day, and what they are merged into."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ingestion.client.memory import MemoryColumns
from ingestion.segments.batch import write_segments
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.compaction import CompactionJob, InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema

DAY = datetime(2025, 6, 1, tzinfo=UTC)


class Shelf:
    """Deep storage with segments of the first of June, and what they are to be merged into."""

    def __init__(self, place: Path, schema: DataSchema) -> None:
        self.storage = LocalStorage(place / "deep", fsync=False)
        self.scratch = place / "scratch"
        self.schema = schema
        self.registry = MemoryColumns()
        self.ids = ColumnIds(self.registry.ids)
        self.files: list[SegmentFile] = []

    def write(self, rows: pa.Table) -> list[SegmentFile]:
        return write_segments(
            rows,
            np.zeros(len(rows), np.int32),
            np.arange(len(rows)),
            schema=self.schema,
            version="v",
            storage=self.storage,
            scratch=self.scratch,
            ids=self.ids,
        )

    def add(self, rows: pa.Table) -> None:
        self.files += self.write(rows)

    def job(self, **changes: Any) -> CompactionJob:
        given: dict[str, Any] = {
            "job_id": "compact_1",
            "attempt": 1,
            "interval_start": DAY,
            "interval_end": DAY + timedelta(days=1),
            "version": "v",
            "data_schema": self.schema,
            "rollup": self.schema.granularitySpec.rollup,
            "segments": [
                InputSegment(id=uuid.uuid4(), path=f.path, rows=f.rows, size_bytes=f.size_bytes, sha256=f.sha256)
                for f in self.files
            ],
            "schemas": [f.columns for f in self.files],
            "max_rows_per_segment": 5_000_000,
            "deep_storage": str(self.storage),
        }
        return CompactionJob(**{**given, **changes})

    def rows(self, files: list[SegmentFile]) -> pa.Table:
        return pa.concat_tables([read_segment(self.storage, f.path) for f in files])


def told(rows: pa.Table) -> list[str]:
    """In an order that does not depend on theirs; floats to nine digits, as sums of them depend on it."""
    return sorted(
        repr({k: round(v, 9) if isinstance(v, float) else v for k, v in sorted(row.items())})
        for row in rows.to_pylist()
    )
