"""Objects that a spec names in S3, Google's or Azure's storage: below the locations of the site, read with the site's
own credentials.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, cast

from ingestion.batch.errors import InputChanged, InputRefused
from ingestion.batch.files import MAX_FILES, InputFile
from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.remote_errors import to_storage_error
from ingestion.specs.inputs.input_source import ObjectsInputSource, spec_location

_SETTING = "HEADGATE_INPUT_LOCATIONS"


class Locations:
    """Such as ``s3://bucket/folder?options``, as deep storage has them: what lies below may be read."""

    def __init__(self, locations: Sequence[str]) -> None:
        self._all = [_Location(text) for text in locations]

    def list_files(self, source: ObjectsInputSource) -> list[InputFile]:
        """Those that a source names, by path; empty ones are passed over later. Raises ``InputRefused``,
        ``DeepStorageError``.
        """
        files: dict[str, InputFile] = {}
        for address in source.named_one_by_one:
            place = self._location_of(address)
            files[address] = InputFile(address, place.size(address), 0)
        for prefix in source.prefixes:
            for file in self._location_of(prefix).listed(prefix):
                files[file.path] = file
                if len(files) > MAX_FILES:
                    raise InputRefused(f"There are more than {MAX_FILES:,} objects that begin with {prefix}.")
        return sorted(files.values(), key=lambda file: file.path)

    @contextmanager
    def open_input(self, input_file: InputFile) -> Iterator[BinaryIO]:
        """Raises ``InputRefused``, ``InputChanged``, ``DeepStorageError``."""
        place = self._location_of(input_file.path)
        name = place.below(input_file.path)
        if place.size(input_file.path) != input_file.size:
            raise InputChanged(f"{input_file.path} has changed since the task began; submit the task again.")
        with place.storage.open(name) as opened:
            reader = _StorageReader(opened, name)
            try:
                yield cast("BinaryIO", io.BufferedReader(reader, 1 << 20))
            except InputRefused:
                if reader.problem is not None:  # some libraries tell of it as of a damaged file
                    raise reader.problem from None
                raise

    def _location_of(self, address: str) -> _Location:
        for location in self._all:
            if address.startswith(f"{location.address}/"):
                return location
        raise InputRefused(f"{address} is not below the locations of {_SETTING}.")


class _StorageReader(io.RawIOBase):
    """What is read of a storage: its errors are the storage's, and say nothing of what is in the file."""

    def __init__(self, opened: BinaryIO, name: str) -> None:
        self.problem: DeepStorageError | None = None
        self._opened = opened
        self._name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        try:
            piece = self._opened.read(len(into))
        except Exception as error:
            self.problem = to_storage_error(f"read {self._name}", error)
            raise self.problem from None
        into[: len(piece)] = piece
        return len(piece)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()


class _Location:
    def __init__(self, text: str) -> None:
        self._text = text
        self.address = spec_location(text)

    @cached_property
    def storage(self) -> DeepStorage:
        return open_deep_storage(self._text)

    def below(self, address: str) -> str:
        return address.removeprefix(self.address).lstrip("/")

    def size(self, address: str) -> int:
        """In bytes. Raises ``InputRefused``, ``DeepStorageError``."""
        name = self.below(address)
        if not self.storage.exists(name):
            raise InputRefused(f"{address} can't be read: there is no such object.")
        return self.storage.size(name)

    def listed(self, prefix: str) -> Iterator[InputFile]:
        """Objects whose keys begin so: a prefix may end anywhere in a name."""
        key_prefix = self.below(prefix)
        try:
            for file in self.storage.files(key_prefix.rpartition("/")[0]):
                if file.path.startswith(key_prefix) and file.size_bytes:
                    yield InputFile(f"{self.address}/{file.path}", file.size_bytes, 0)
        except DeepStorageError as error:
            if error.permanent:
                raise InputRefused(f"{prefix} can't be listed: {error}") from None
            raise
