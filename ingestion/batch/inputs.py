"""What a spec may name, wherever it lies: files of this machine, of the web, and in object storages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ingestion.batch.files import Folders, InputFile
from ingestion.batch.http_files import fetch, find_web_files
from ingestion.batch.object_files import Locations
from ingestion.specs.inputs.input_source import FilesSource, LocalInputSource, ObjectsInputSource
from ingestion.specs.messages.batch_protocol import Reachable
from ingestion.task.scratch import scratch_folder


class Inputs:
    """Finds files, and opens them; ``reachable`` says where they may lie."""

    def __init__(self, reachable: Reachable) -> None:
        self._folders = Folders(reachable.local_folders)
        self._locations = Locations(reachable.locations)
        self._policy = reachable.address_policy

    def list_files(self, source: FilesSource) -> list[InputFile]:
        """Those that a source names. Raises ``InputRefused``, ``InputUnreachable``, ``DeepStorageError``."""
        if isinstance(source, LocalInputSource):
            return self._folders.list_files(source)
        if isinstance(source, ObjectsInputSource):
            return self._locations.list_files(source)
        return find_web_files(source.uris, self._policy)

    @contextmanager
    def open_input(self, input_file: InputFile) -> Iterator[BinaryIO]:
        """A file that was found: seekable. Raises ``InputRefused``, ``InputChanged``, ``InputUnreachable``,
        ``DeepStorageError``.
        """
        if input_file.is_on_the_web:
            with scratch_folder() as folder, (folder / "file").open("w+b") as file:
                fetch(input_file, self._policy, file)
                file.seek(0)
                yield file
            return
        with (self._folders if input_file.path.startswith("/") else self._locations).open_input(input_file) as stream:
            yield stream
