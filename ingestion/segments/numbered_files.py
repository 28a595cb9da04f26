"""Segment files that DuckDB knows by number alone: it sees no path of deep storage, and no other file."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.spec import AbstractFileSystem

from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.errors import DamagedSegment
from ingestion.segments.reader import IN_MEMORY_BYTES, check_size, read_verified
from ingestion.segments.writer import columns_of
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.protocol import Column

_SCHEME = "segment"


@dataclass(frozen=True)
class OpenedFile:
    """A segment file of the size that was registered; ``content`` of a small one, which has its hash too."""

    storage: DeepStorage
    registered: RegisteredFile
    content: bytes | None

    def open(self) -> BinaryIO:
        """A new reader of it."""
        return self.storage.open(self.registered.path) if self.content is None else io.BytesIO(self.content)

    def columns(self) -> list[Column]:
        """What it holds, in its order. Raises ``DamagedSegment`` if it is no Parquet file."""
        with self.open() as file:
            try:
                return columns_of(pa.schema(_without_element_name(field) for field in pq.read_schema(file)))
            except (pa.ArrowException, OSError) as error:
                raise DamagedSegment(f"{self.registered.path} can't be read as Parquet: {error}") from error


def _without_element_name(field: pa.Field) -> pa.Field:
    """A list's values have a name of Parquet's own, which is no part of its type."""
    return pa.field(field.name, pa.list_(field.type.value_type)) if pa.types.is_list(field.type) else field


def open_registered(storage: DeepStorage, file: RegisteredFile) -> OpenedFile:
    """The file, if it is there and is what was registered. Raises ``DamagedSegment`` or ``DeepStorageError``."""
    if file.size_bytes <= IN_MEMORY_BYTES:
        return OpenedFile(storage, file, read_verified(storage, file))
    check_size(storage, file)  # to compare the hash would be to read all of it
    return OpenedFile(storage, file, None)


class NumberedFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """What DuckDB asks for a file, for those that are kept at the moment. Nothing can be written."""

    protocol = _SCHEME
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._open_files: dict[str, OpenedFile] = {}

    @staticmethod
    def address(number: int) -> str:
        return f"{_SCHEME}://{number}"

    def keep(self, number: int, file: OpenedFile) -> None:
        """From now on it can be read."""
        self._open_files[str(number)] = file

    def forget(self, number: int) -> None:
        """From now on it can't."""
        self._open_files.pop(str(number), None)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        file = self._file(path)
        return {"name": path, "size": file.registered.size_bytes, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        return self._number(path) in self._open_files

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path] if self.exists(path) else []

    def modified(self, path: str) -> datetime:
        """Segments never change."""
        return datetime(1970, 1, 1, tzinfo=UTC)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        return self._file(path).open()

    def _file(self, path: str) -> OpenedFile:
        file = self._open_files.get(self._number(path))
        if file is None:
            raise FileNotFoundError(path)
        return file

    @staticmethod
    def _number(path: str) -> str:
        return path.removeprefix(f"{_SCHEME}://").strip("/")
