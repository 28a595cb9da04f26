"""Deep storage in a folder of this machine, or one that is mounted on all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from ingestion.segments.errors import storage_error
from ingestion.segments.names import parts_of, temporary_name
from ingestion.segments.stored_file import StoredFile

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EXISTING_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_CHUNK = 1024 * 1024


class LocalStorage:
    """A ``DeepStorage`` under one folder, which is made when the first file is put.

    Folders are entered one by one relative to the last, following no symbolic link, so that nothing that changes
    meanwhile leads out of the root. ``fsync=False`` gives up durability, for measurements and tests.
    """

    def __init__(self, root: Path, fsync: bool = True) -> None:
        self._root = root.resolve()
        self._fsync = fsync

    def put(self, local: Path, relative: str) -> None:
        """See ``DeepStorage.put``: a temporary file beside it, synced, linked to its name, the folder synced."""
        *folders, name = parts_of(relative)
        with _storage_errors(f"store {relative}"), self._folder(folders, make=True) as folder:
            temporary = temporary_name()
            try:
                self._copy(local, folder, temporary)
                _link_into_place(folder, temporary, name)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
            self._sync(folder)

    def url(self, relative: str) -> str:
        return self._root.joinpath(*parts_of(relative)).as_uri()

    def exists(self, relative: str) -> bool:
        try:
            self._stat(relative)
        except FileNotFoundError:
            return False
        return True

    def size(self, relative: str) -> int:
        with _storage_errors(f"look at {relative}"):
            return self._stat(relative).st_size

    def open(self, relative: str) -> BinaryIO:
        *folders, name = parts_of(relative)
        with _storage_errors(f"open {relative}"), self._folder(folders) as folder:
            return os.fdopen(os.open(name, _EXISTING_FILE_FLAGS, dir_fd=folder), "rb")

    def delete(self, relative: str) -> None:
        *folders, name = parts_of(relative)
        with _storage_errors(f"delete {relative}"), suppress(FileNotFoundError), self._folder(folders) as folder:
            os.unlink(name, dir_fd=folder)
            self._sync(folder)

    def folders(self, relative: str = "") -> list[str]:
        with _storage_errors(f"list {relative or 'the root'}"), suppress(FileNotFoundError):
            return [e.name for e in self._entries(relative) if e.is_dir(follow_symlinks=False)]
        return []

    def files(self, relative: str = "") -> Iterator[StoredFile]:
        with _storage_errors(f"list {relative or 'the root'}"), suppress(FileNotFoundError):
            yield from self._below(relative)

    def _below(self, relative: str) -> Iterator[StoredFile]:
        for entry in self._entries(relative):
            path = f"{relative}/{entry.name}" if relative else entry.name
            with suppress(FileNotFoundError):  # it may go while others are looked at
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(path)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield StoredFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def _entries(self, relative: str) -> Iterator[os.DirEntry[str]]:
        with self._folder(parts_of(relative) if relative else []) as folder, os.scandir(folder) as entries:
            yield from entries

    def _stat(self, relative: str) -> os.stat_result:
        """Raises ``FileNotFoundError`` as it is."""
        *folders, name = parts_of(relative)
        with _storage_errors(f"look at {relative}", passing=FileNotFoundError), self._folder(folders) as folder:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return status

    @contextmanager
    def _folder(self, names: list[str], make: bool = False) -> Iterator[int]:
        """A descriptor of the folder; with ``make`` what is missing of it is made, durably."""
        if make:
            self._make_root()
        folder = os.open(self._root, _FOLDER_FLAGS)
        try:
            for name in names:
                below = self._entered(folder, name, make)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    def _entered(self, folder: int, name: str, make: bool) -> int:
        try:
            return os.open(name, _FOLDER_FLAGS, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        self._sync(folder)
        return os.open(name, _FOLDER_FLAGS, dir_fd=folder)

    def _make_root(self) -> None:
        if self._root.is_dir():
            return
        missing = [p for p in (self._root, *self._root.parents) if not p.exists()]
        self._root.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            above = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._sync(above)
            os.close(above)

    def _copy(self, local: Path, folder: int, name: str) -> None:
        with (
            local.open("rb") as source,
            os.fdopen(os.open(name, _NEW_FILE_FLAGS, 0o644, dir_fd=folder), "wb") as target,
        ):
            while part := source.read(_CHUNK):
                target.write(part)
            target.flush()
            if os.fstat(target.fileno()).st_size != os.fstat(source.fileno()).st_size:
                raise OSError(errno.EIO, "it was stored incompletely")
            self._sync(target.fileno())

    def _sync(self, descriptor: int) -> None:
        if self._fsync:
            os.fsync(descriptor)


def _link_into_place(folder: int, temporary: str, name: str) -> None:
    """Give the file its name unless that is taken: a link, unlike a rename, refuses to replace."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _rename_into_place(folder, temporary, name)


def _rename_into_place(folder: int, temporary: str, name: str) -> None:
    """Where the file system has no links: names hold a UUID, so what is looked for before is not there after."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    raise FileExistsError(errno.EEXIST, "it exists")


@contextmanager
def _storage_errors(action: str, passing: type[OSError] | None = None) -> Iterator[None]:
    """Turn the file system's errors into ``DeepStorageError``."""
    try:
        yield
    except OSError as error:
        if passing is not None and isinstance(error, passing):
            raise
        raise storage_error(action, error) from error
