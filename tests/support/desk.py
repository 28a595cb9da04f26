"""An index on a desk: rows as the decoder gives them, and what lies on the disk then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ingestion.rows import TIME_TYPE
from ingestion.segments.index import RowIndex
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.tasks.ingestion_spec import TuningConfig
from tests.support.column_ids import some_ids

DAY_MS = 86_400_000
JUNE_MS = 1_748_736_000_000


def schema_of(rollup: bool = False, metrics: Sequence[dict[str, Any]] = (), granularity: str = "DAY") -> DataSchema:
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "metricsSpec": list(metrics),
            "granularitySpec": {"segmentGranularity": granularity, "rollup": rollup},
        }
    )


def batch_of(times: Sequence[int], **columns: pa.Array) -> pa.Table:
    """Rows as the decoder gives them, one for each record; times in milliseconds from June on."""
    index = pa.array(range(len(times)), pa.int32())
    ms = pa.array([JUNE_MS + t for t in times], pa.int64()).view(TIME_TYPE)
    return pa.table([index, ms, *columns.values()], names=["__row", "__time", *columns])


class Desk:
    """An index, and where it works."""

    def __init__(self, place: Path, schema: DataSchema, clock: Callable[[], float] = float, **tuning: Any) -> None:
        self.scratch = place / "scratch"
        self.deep = place / "deep"
        self.storage = LocalStorage(self.deep, fsync=False)
        self.index = RowIndex(
            schema=schema, tuning=TuningConfig.model_validate(tuning), scratch=self.scratch, clock=clock
        )
        self.ids = some_ids()
        self.offset = 0

    def add(self, rows: pa.Table, records: int | None = None) -> None:
        """Rows of partition 0, the offsets going on."""
        count = len(rows) if records is None else records
        self.index.add(rows, np.zeros(count, np.int32), np.arange(self.offset, self.offset + count))
        self.offset += count

    def write(self) -> list[SegmentFile]:
        return self.index.write(version="v", storage=self.storage, ids=self.ids)

    def read(self, files: Sequence[SegmentFile]) -> list[dict[str, Any]]:
        return [row for f in files for row in read_segment(self.storage, f.path).to_pylist()]

    def settle(self) -> None:
        """Wait until nothing is being persisted."""
        self.index.settle()

    @property
    def spilled(self) -> list[Path]:
        return [p for p in self.scratch.rglob("*") if p.is_file()]


def numbers(rows: int, seed: int = 1) -> pa.Table:
    """Rows that can't be compressed, all of one day."""
    random = np.random.default_rng(seed)
    return batch_of(random.integers(0, DAY_MS, rows).tolist(), n=pa.array(random.integers(0, 2**60, rows)))
