"""Where in deep storage a segment stands: ``<datasource>/<start>_<end>/<version>/<uuid>.parquet``.

Times are Druid's ISO 8601 with ``-`` for every ``:`` (``2025-06-01T00-00-00.000Z``): colons are refused by Windows and
by Hadoop's paths, and have to be quoted in S3 and shells. In a version whatever else is not a letter, a digit or one of
``._-`` becomes ``_``; two versions that come out alike don't collide, as the file's name is a UUID.
"""

from __future__ import annotations

import re
from datetime import datetime
from uuid import UUID

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def segment_path(datasource: str, interval: tuple[datetime, datetime], version: str, file: UUID) -> str:
    """The relative path of a segment file."""
    start, end = (iso(t).replace(":", "-") for t in interval)
    return f"{datasource}/{start}_{end}/{_safe(version)}/{file}.parquet"


def iso(time: datetime) -> str:
    """Druid's form of a UTC time: ``2025-06-01T00:00:00.000Z``."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _safe(version: str) -> str:
    safe = _UNSAFE.sub("_", version.replace(":", "-"))
    return "_" + safe if safe.startswith(".") or not safe else safe
