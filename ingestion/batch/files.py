"""Files that a spec may name: below the folders that the site allows, also after following links."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ingestion.batch.errors import InputChanged, InputRefused
from ingestion.specs.inputs.input_source import LocalInputSource

MAX_FILES = 1_000_000


@dataclass(frozen=True)
class InputFile:
    """A file as it was when it was found: a path, or an address."""

    path: str
    size: int  # of one of the web: how much it counts for
    mtime_ns: int
    state_headers: tuple[tuple[str, str], ...] = ()  # what its server said of its state: names and values of headers

    @property
    def is_on_the_web(self) -> bool:
        """Whether its size is not known before it is read."""
        return self.path.startswith(("http://", "https://"))


class Folders:
    """The folders below which files may be read, links resolved."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._roots = [Path(f).resolve() for f in folders]

    def list_files(self, source: LocalInputSource) -> list[InputFile]:
        """Those that a source names, by path; links are passed over. Raises ``InputRefused``."""
        if source.baseDir is None:
            return [self._found(path) for path in dict.fromkeys(source.files)]
        self._check_below(Path(source.baseDir).resolve(), source.baseDir)
        pattern = _compile_wildcard(source.filter or "*")
        files: list[InputFile] = []
        for path in _walk(source.baseDir):
            if pattern.fullmatch(os.path.basename(path)):
                files.append(self._found(path))
                if len(files) > MAX_FILES:
                    raise InputRefused(f"There are more than {MAX_FILES:,} files below {source.baseDir}.")
        return sorted(files, key=lambda file: file.path)

    def _found(self, path: str) -> InputFile:
        with self.opened(path) as file:
            status = os.fstat(file.fileno())
        return InputFile(path, status.st_size, status.st_mtime_ns)

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """A regular file below one of the folders. What was opened is looked at, not what its name says: a link that is
        made meanwhile leads nowhere else. Raises ``InputRefused``.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise InputRefused(f"{path} can't be read: {error.strerror}.") from None
        with os.fdopen(descriptor, "rb", buffering=1 << 20) as file:
            self._check_below(Path(os.readlink(f"/proc/self/fd/{descriptor}")), path)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputRefused(f"{path} is not a regular file.")
            yield file

    @contextmanager
    def open_input(self, input_file: InputFile) -> Iterator[BinaryIO]:
        """A file that was found, by ``opened``. Raises ``InputChanged`` when it is another one now."""
        with self.opened(input_file.path) as file:
            status = os.fstat(file.fileno())
            if (status.st_size, status.st_mtime_ns) != (input_file.size, input_file.mtime_ns):
                raise InputChanged(f"{input_file.path} has changed since the task began; submit the task again.")
            yield file

    def _check_below(self, real: Path, path: str) -> None:
        if not any(real == root or root in real.parents for root in self._roots):
            raise InputRefused(f"{path} is not below the folders of HEADGATE_LOCAL_INPUT_FOLDERS.")


def _walk(folder: str) -> Iterator[str]:
    """Every regular file below, no link followed."""
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise InputRefused(f"{folder} can't be listed: {error.strerror}.") from None
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


def _compile_wildcard(wildcard: str) -> re.Pattern[str]:
    """Druid's: ``*`` and ``?`` mean something, and nothing else does."""
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in wildcard), re.DOTALL)
