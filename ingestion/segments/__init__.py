"""Rows to immutable, time-partitioned Parquet files in deep storage. Knows no Kafka and no Django.

``write_segments`` writes one file for each segment interval (more when one grows too long) and hands them to a
``DeepStorage``; nothing is registered here. A file that was put but never registered is an orphan, to be deleted when
it is old: nothing in this package deletes a file because of an error.
"""

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DamagedSegment, DeepStorageError, SegmentError
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment, verify
from ingestion.segments.stored import StoredFile
from ingestion.segments.writer import write_segments

__all__ = [
    "DamagedSegment",
    "DeepStorage",
    "DeepStorageError",
    "LocalStorage",
    "SegmentError",
    "StoredFile",
    "open_deep_storage",
    "read_segment",
    "verify",
    "write_segments",
]
