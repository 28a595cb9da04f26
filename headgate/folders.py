"""Small files in a folder: of this machine, or of what pyarrow and fsspec reach.

Deep storage has another door, ``ingestion/segments/deep_storage.py``, since neither can use the other's. Executors of a
Spark application have the package ``headgate`` alone, and those of an indexer have ``ingestion`` alone. Their promises
differ, too. A folder here replaces files, takes bytes, and leaves each file system its own errors and retries. Deep
storage never replaces a file, follows no symbolic link, names what a person must correct, and leaves retries to the
indexer's breaker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import fsspec
import pyarrow as pa
from pyarrow import fs

from headgate.errors import OptionError

_PYARROW_SCHEMES = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_ALIASES = {"s3a": "s3", "s3n": "s3"}


class Folder(Protocol):
    """Files by their path relative to one folder, with ``/``. Listings show a file once it has been written."""

    def write(self, name: str, content: Any) -> None:
        """A whole file or none, there to stay when this returns; one that exists is replaced. ``content``: a buffer."""

    def read(self, name: str) -> pa.Buffer:
        """All of a file; ``FileNotFoundError`` if there is none."""

    def open(self, name: str) -> pa.NativeFile:
        """A file for reading at any place; the caller closes it."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The names of the files directly in a folder, with their bytes; none if there is no such folder."""

    def delete(self, name: str) -> None:
        """Nothing happens if there is none."""


def open_folder(location: str) -> Folder:
    """The folder at a path or URL. Credentials come from the environment. Raises ``OptionError``."""
    parts = urlsplit(location)
    scheme = _ALIASES.get(parts.scheme.lower(), parts.scheme.lower())
    if "://" not in location and not location.startswith("file:"):
        if not location.startswith("/"):
            raise OptionError(f"{location!r} is relative: give an absolute path, or a URL")
        return LocalFolder(Path(location))
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise OptionError(f"{location!r} names a host: write file:/// and an absolute path")
        return LocalFolder(Path(unquote(parts.path)))
    try:
        if scheme in _PYARROW_SCHEMES:
            system, root = fs.FileSystem.from_uri(scheme + location[len(parts.scheme) :])
        else:
            fsspec_system, root = fsspec.core.url_to_fs(location, skip_instance_cache=True, use_listings_cache=False)
            system = fs.PyFileSystem(fs.FSSpecHandler(fsspec_system))
    except (ImportError, ValueError, pa.ArrowException) as error:
        raise OptionError(f"the location at {scheme}:// can't be reached: {error}") from None
    return RemoteFolder(system, root)


class LocalFolder:
    """A folder of this machine, or one that is mounted on all."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, name: str, content: Any) -> None:
        path = self._root / name
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        _sync_folder(path.parent)

    def read(self, name: str) -> pa.Buffer:
        return pa.py_buffer((self._root / name).read_bytes())

    def open(self, name: str) -> pa.NativeFile:
        return pa.memory_map(str(self._root / name))

    def sizes(self, folder: str) -> dict[str, int]:
        sizes = {}
        with suppress(FileNotFoundError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    if entry.is_file() and not entry.name.startswith("."):
                        sizes[entry.name] = entry.stat().st_size
        return sizes

    def delete(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class RemoteFolder:
    """A folder of a file system of pyarrow's, whose files show when they are complete, as objects do."""

    def __init__(self, system: fs.FileSystem, root: str) -> None:
        self._system = system
        self._root = root.rstrip("/")

    def write(self, name: str, content: Any) -> None:
        path = f"{self._root}/{name}"
        if self._system.type_name != "s3":
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
        with self._system.open_output_stream(path) as file:
            file.write(content)

    def read(self, name: str) -> pa.Buffer:
        with self.open(name) as file:
            return file.read_buffer()

    def open(self, name: str) -> pa.NativeFile:
        return self._system.open_input_file(f"{self._root}/{name}")

    def sizes(self, folder: str) -> dict[str, int]:
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        return {info.base_name: info.size for info in self._files(selector)}

    def _files(self, selector: fs.FileSelector) -> Iterator[fs.FileInfo]:
        return (info for info in self._system.get_file_info(selector) if info.type == fs.FileType.File)

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._system.delete_file(f"{self._root}/{name}")
