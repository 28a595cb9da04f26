"""What can go wrong with segments and deep storage."""

from __future__ import annotations

import errno

from ingestion.errors import IngestionError


class SegmentError(IngestionError):
    """A segment can't be written or read."""


class DamagedSegment(SegmentError):
    """A registered file is missing, or is not what was written."""


class DeepStorageError(SegmentError):
    """Deep storage refused. Whoever raises it says whether trying again can help."""

    directive_for_others = "stop"  # what others hold can't be stored either

    def __init__(self, message: str, permanent: bool) -> None:
        super().__init__(message, permanent)


_PERMANENT = frozenset(
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)


def storage_error(action: str, error: OSError) -> DeepStorageError:
    """A file system's error; a full disk or a failing device may pass, a refusal does not."""
    reason = error.strerror or str(error)
    return DeepStorageError(f"can't {action}: {reason}", permanent=error.errno in _PERMANENT)
