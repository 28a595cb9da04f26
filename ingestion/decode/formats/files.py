"""Files that a spec may name: those in one folder of the machine that decodes, which the operator sets."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ingestion.decode.errors import UnusableSchema

MAX_BYTES = 16 * 1024 * 1024


def read_schema_file(place: str, folder: str) -> bytes:
    """The file at a path, or a ``file:`` URL, in ``folder``; empty: no files may be read.

    Raises ``UnusableSchema`` for one that may not be read, or can't be.
    """
    if not folder:
        raise UnusableSchema(
            "a spec may not name files on this site: give the schema itself in the spec, or ask an "
            "administrator to set HEADGATE_SCHEMA_FOLDER"
        )
    root = Path(folder).resolve()
    path = (root / _local_path(place)).resolve()  # resolved: no link and no '..' leads out
    if not path.is_relative_to(root):
        raise UnusableSchema(f"the file {place} is not in the schema folder (HEADGATE_SCHEMA_FOLDER)")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnusableSchema(f"the file {place} is larger than {MAX_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UnusableSchema(f"the file {place} can't be read: {error.strerror}") from None


def _local_path(place: str) -> str:
    parts = urlsplit(place)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise UnusableSchema(f"{place} is an address: give the name of a file in the schema folder")
    return unquote(parts.path) if parts.scheme else place
