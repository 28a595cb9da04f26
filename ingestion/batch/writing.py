"""The chunks of one bin to segments: sorted, rolled up and written as a stream's rows are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingestion.batch.reading import Chunk
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.index import RowIndex
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.tasks.batch import BatchSpec


@dataclass(frozen=True)
class BinOutput:
    """What a bin has become: of how many records which files."""

    records: int
    files: list[SegmentFile]


def write_bin(
    chunks: Iterable[Chunk], spec: BatchSpec, version: str, storage: DeepStorage, scratch: Path, ids: ColumnIds
) -> BinOutput:
    """Raises ``DeepStorageError``, after which some files may have been stored: they are orphans; and what asking for
    ids does.
    """
    index = RowIndex(schema=spec.dataSchema, tuning=spec.tuningConfig.gathering, scratch=scratch)
    records = 0
    try:
        for chunk in chunks:
            numbers = np.arange(records, records + chunk.rows, dtype=np.int64)
            index.add(chunk.table, np.zeros(chunk.rows, np.int64), numbers)
            records += chunk.rows
        files = index.write(version=version, storage=storage, ids=ids)
    finally:
        index.close()
    # Their records come from files, which have no offsets.
    return BinOutput(records, [file.model_copy(update={"offsets": {}}) for file in files])
