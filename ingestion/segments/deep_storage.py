"""Where segments are kept: what Headgate asks of it, and how a location becomes one."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from ingestion.segments.errors import DeepStorageError
from ingestion.segments.local import LocalStorage


class DeepStorage(Protocol):
    """Immutable files under relative paths with ``/`` (``flights/…/….parquet``).

    Every method raises ``DeepStorageError``: permanent for a path that is absolute, holds an empty part, ``.``,
    ``..`` or NUL, or leads through a symbolic link.
    """

    def put(self, local: Path, relative: str) -> None:
        """Store a copy of ``local``. Readers see the whole file or none, and it is there to stay (also after a power
        cut) when this returns. What exists is never overwritten: a permanent error."""
        ...

    def url(self, relative: str) -> str:
        """The file's address for others, for example ``file:///…``."""
        ...

    def exists(self, relative: str) -> bool:
        """Whether there is such a file."""
        ...

    def size(self, relative: str) -> int:
        """Its size in bytes; an error if there is none."""
        ...

    def open(self, relative: str) -> BinaryIO:
        """Open it for reading; the caller closes it. An error if there is none."""
        ...

    def delete(self, relative: str) -> None:
        """Remove it; nothing happens if there is none."""
        ...


def open_deep_storage(location: str) -> DeepStorage:
    """The deep storage at a path or a ``file://`` URL. Raises a permanent ``DeepStorageError`` for any other place."""
    if not location.strip() or "\0" in location:
        raise DeepStorageError("the deep storage location is empty or holds NUL: give a path or file://…", True)
    if "://" not in location:
        return LocalStorage(Path(location))
    parts = urlsplit(location)
    if parts.scheme.lower() != "file":
        message = f"deep storage at {parts.scheme}:// is not supported in this version: give a path or file://…"
        raise DeepStorageError(message, True)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise DeepStorageError(f"{location!r} names a host: write file:/// and an absolute path", True)
    return LocalStorage(Path(unquote(parts.path)))
