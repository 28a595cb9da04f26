"""Rows to immutable, time-partitioned Parquet files in deep storage. Knows no Kafka and no Django.

``write_segments`` writes one file for each segment interval (more when one grows too long) of a batch and hands them
to a ``DeepStorage``; ``RowIndex`` does so with the rows of many batches, which it gathers. Nothing is registered here.
A file that was put but never registered is an orphan, to be deleted when it is old: nothing in this package deletes a
file from deep storage because of an error.
"""

from ingestion.segments.batch import intervals_among, write_segments
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DamagedSegment, DeepStorageError, SegmentError
from ingestion.segments.index import RowIndex, share_bytes
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment, read_segments, verify
from ingestion.segments.stored import StoredFile

__all__ = [
    "ColumnIds",
    "DamagedSegment",
    "DeepStorage",
    "DeepStorageError",
    "LocalStorage",
    "RowIndex",
    "SegmentError",
    "StoredFile",
    "intervals_among",
    "open_deep_storage",
    "read_segment",
    "read_segments",
    "share_bytes",
    "verify",
    "write_segments",
]
