"""Reading segments back, and checking that they are what was written."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.errors import DamagedSegment
from ingestion.specs.protocol import SegmentFile

_CHUNK = 1024 * 1024


def read_segment(storage: DeepStorage, path: str) -> pa.Table:
    """All rows of a segment file. Raises ``DeepStorageError``, or ``DamagedSegment`` if it is no Parquet file."""
    with storage.open(path) as file:
        try:
            return pq.read_table(file)
        except pa.ArrowException as error:
            raise DamagedSegment(f"{path} can't be read as Parquet: {error}") from error


def verify(storage: DeepStorage, segment: SegmentFile) -> None:
    """Check that the file exists with its size and hash. Raises ``DamagedSegment`` if not, or ``DeepStorageError``."""
    if not storage.exists(segment.path):
        raise DamagedSegment(f"{segment.path} does not exist")
    size_bytes = storage.size(segment.path)
    if size_bytes != segment.size_bytes:
        raise DamagedSegment(f"{segment.path} has {size_bytes} bytes, not {segment.size_bytes}")
    sha256 = _sha256(storage, segment.path)
    if sha256 != segment.sha256:
        raise DamagedSegment(f"{segment.path} has the SHA-256 {sha256}, not {segment.sha256}")


def _sha256(storage: DeepStorage, path: str) -> str:
    digest = hashlib.sha256()
    with storage.open(path) as file:
        while part := file.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()
