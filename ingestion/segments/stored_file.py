"""What a listing of deep storage says of a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class StoredFile:
    """A file by its path relative to the root."""

    path: str
    size_bytes: int
    modified: datetime | None  # UTC, by the storage's clock; None if it does not say
