"""Rows on their way to segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from ingestion.rows import joined_rows, row_indexes
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.writer import Integers, write_segments
from ingestion.specs import DataSchema, TuningConfig
from ingestion.specs.protocol import SegmentFile


class RowIndex:
    """Interim: all in memory."""

    def __init__(self, *, schema: DataSchema, tuning: TuningConfig, scratch: Path) -> None:
        self._schema, self._tuning, self._scratch = schema, tuning, scratch
        self._parts: list[tuple[pa.Table, Integers, Integers]] = []
        self.rows = 0

    def add(self, rows: pa.Table, partitions: Integers, offsets: Integers) -> None:
        self._parts.append((rows, partitions, offsets))
        self.rows += rows.num_rows

    @property
    def full(self) -> bool:
        return self.rows >= self._tuning.maxRowsPerSegment

    def write(self, *, version: str, storage: DeepStorage) -> list[SegmentFile]:
        if not self._parts:
            return []
        base, tables = 0, []
        for rows, partitions, _ in self._parts:
            tables.append(rows.set_column(0, "__row", pa.array(row_indexes(rows) + base, pa.int64())))
            base += len(partitions)
        return write_segments(
            joined_rows(tables),
            np.concatenate([p for _, p, _ in self._parts]),
            np.concatenate([o for _, _, o in self._parts]),
            schema=self._schema,
            version=version,
            storage=storage,
            scratch=self._scratch,
            max_rows_per_segment=self._tuning.maxRowsPerSegment,
            index_spec=self._tuning.indexSpec,
        )

    def drop(self, gone: set[int]) -> None:
        parts, self._parts, self.rows = self._parts, [], 0
        for rows, partitions, offsets in parts:
            keep = ~np.isin(np.asarray(partitions)[row_indexes(rows)], list(gone))
            self.add(rows.filter(pa.array(keep)), partitions, offsets)

    def clear(self) -> None:
        self._parts = []
        self.rows = 0
