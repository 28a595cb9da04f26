"""Where segments are kept: what Headgate asks of it, and how a location becomes one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from ingestion.segments.errors import DeepStorageError
from ingestion.segments.local import LocalStorage
from ingestion.segments.remote import open_remote
from ingestion.segments.stored_file import StoredFile
from ingestion.specs.messages.deep_storage import local_folder


class DeepStorage(Protocol):
    """Immutable files under relative paths with ``/`` (``flights/…/….parquet``).

    Every method raises ``DeepStorageError``: permanent for a path that is absolute, holds an empty part, ``.``,
    ``..`` or NUL, or leads through a symbolic link.
    """

    def put(self, local: Path, relative: str) -> None:
        """Store a copy of ``local``, once: who asks again decides when (``ingestion.task.breaker``).

        Readers see the whole file or none. When this returns it is there to stay (also after a power cut) and has been
        seen to have its size. What exists is never overwritten: a permanent error."""
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

    def folders(self, relative: str = "") -> list[str]:
        """The names of the folders directly in a folder, in any order; none if there is no such folder."""
        ...

    def files(self, relative: str = "") -> Iterator[StoredFile]:
        """Every file below a folder, however deep, in any order; none if there is no such folder."""
        ...


def open_deep_storage(location: str) -> DeepStorage:
    """The deep storage at a path or a URL: ``file://``, ``s3://``, or what pyarrow's file systems reach.

    Raises ``DeepStorageError``: permanent for a location that makes no sense. No message holds the location's secrets.
    """
    if not location.strip() or "\0" in location:
        raise DeepStorageError("the deep storage location is empty or contains NUL: give a path or a URL", True)
    folder = local_folder(location)
    if folder is None:
        return open_remote(location)
    if "://" in location and (urlsplit(location).netloc not in ("", "localhost") or not folder.is_absolute()):
        raise DeepStorageError(f"{location!r} names a host: write file:/// and an absolute path", True)
    return LocalStorage(folder)
