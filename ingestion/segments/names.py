"""Where in deep storage a segment stands: ``<datasource>/<start>_<end>/<version>/<uuid>.parquet``.

Times are Druid's ISO 8601 with ``-`` for every ``:`` (``2025-06-01T00-00-00.000Z``): colons are refused by Windows and
by Hadoop's paths, and have to be quoted in S3 and shells. In a version whatever else is not a letter, a digit or one of
``._-`` becomes ``_``; two versions that come out alike don't collide, as the file's name is a UUID. Beside them
stand, until they get their name, files called ``.<32 hex digits>.tmp``, and in ``<datasource>/<start>_<end>/iceberg/``
the catalog's files, ``<uuid>.avro``. Nothing else in deep storage is Headgate's.
"""

from __future__ import annotations

import re
from datetime import datetime
from uuid import UUID, uuid4

from ingestion.segments.errors import DeepStorageError

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_TIME = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DATASOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_INTERVAL = re.compile(rf"{_TIME}_{_TIME}")
_HEADGATE_FILE = re.compile(
    rf"{_DATASOURCE.pattern}/{_INTERVAL.pattern}/[A-Za-z0-9._-]+/(?:{_UUID}\.(?:parquet|avro)|\.[0-9a-f]{{32}}\.tmp)"
)


def segment_path(datasource: str, interval: tuple[datetime, datetime], version: str, file: UUID) -> str:
    """The relative path of a segment file."""
    start, end = (iso(t).replace(":", "-") for t in interval)
    return f"{datasource}/{start}_{end}/{_safe_version(version)}/{file}.parquet"


def iceberg_path(datasource: str, interval: tuple[datetime, datetime], file: UUID) -> str:
    """The relative path of a manifest of the interval, or of a list of manifests."""
    start, end = (iso(t).replace(":", "-") for t in interval)
    return f"{datasource}/{start}_{end}/iceberg/{file}.avro"


def temporary_name() -> str:
    """The name of a file that is not whole yet."""
    return f".{uuid4().hex}.tmp"


def is_ours(path: str) -> bool:
    """Whether a file at this relative path was put there by Headgate: a segment's, the catalog's, or on its way."""
    return _HEADGATE_FILE.fullmatch(path) is not None and ".." not in path.split("/")


def may_be_datasource(folder: str) -> bool:
    """Whether a folder at the root may hold a datasource's segments."""
    return _DATASOURCE.fullmatch(folder) is not None


def may_be_interval(folder: str) -> bool:
    """Whether a folder in a datasource's may hold an interval's segments."""
    return _INTERVAL.fullmatch(folder) is not None


def parts_of(relative: str) -> list[str]:
    """The parts of a relative path. Raises a permanent ``DeepStorageError`` if it could lead elsewhere."""
    parts = relative.split("/")
    if "\0" in relative or any(p in ("", ".", "..") for p in parts):
        raise DeepStorageError(f"{relative!r} is not a path inside deep storage", True)
    return parts


def iso(time: datetime) -> str:
    """Druid's form of a UTC time: ``2025-06-01T00:00:00.000Z``."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _safe_version(version: str) -> str:
    safe = _UNSAFE.sub("_", version.replace(":", "-"))
    return "_" + safe if safe.startswith(".") or not safe else safe
