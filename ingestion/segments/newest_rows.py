"""The process that reads a datasource's newest rows: ``python -m ingestion.segments.newest_rows``.

Spoken to through standard input and output (``ingestion.specs.messages.newest_rows``). DuckDB reads the files, and can
do nothing else: it knows them by numbers, has no other file, no network, no extension, a limit for memory and no way to
change its settings. What takes too much of the machine ends the process; who asks waits only so long.
"""

from __future__ import annotations

import heapq
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

import duckdb
import pyarrow as pa

from ingestion.errors import IngestionError
from ingestion.segments.cells import Cells, Row
from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.footer import read_footer
from ingestion.segments.numbered_files import NumberedFiles, OpenedFile, open_registered
from ingestion.sketches.description import UnreadableSketch
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.newest_rows import FileProblem, Footer, RowsAnswer, RowsColumn, RowsOrder
from ingestion.without_pandas import keep_pandas_out

_MEMORY_BYTES = 384 * 1024 * 1024  # of DuckDB
_ADDRESS_SPACE_BYTES = 8 * 1024 * 1024 * 1024
_PROCESSOR_S = 30
_AT_ONCE = 4  # files that are fetched side by side


class _Reading:
    """What has been read of an order so far."""

    def __init__(self, order: RowsOrder, storage: DeepStorage) -> None:
        self._order, self._storage = order, storage
        self._cells = Cells(order)
        self._files = NumberedFiles()
        self._engine = open_locked_engine(self._files, len(order.files))
        self._deadline = time.monotonic() + order.reading_s
        self._newest: list[Row] = []  # a heap: the oldest of them first
        self._columns: dict[str, set[str]] = {}
        self._problems: list[FileProblem] = []
        self._read = 0
        self._footer: Footer | None = None

    def answer(self) -> RowsAnswer:
        """Read file after file, until no other can hold a newer row or the time is up."""
        unread = None
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for first in range(0, len(self._order.files), _AT_ONCE):
                if self._holds_all_since(self._order.last_ms[first]):
                    break
                if time.monotonic() > self._deadline:
                    unread = self._order.last_ms[first]
                    break
                self._read_some(pool, first)
        return self._answer(unread)

    def _holds_all_since(self, last_ms: int) -> bool:
        return len(self._newest) == self._order.limit and self._newest[0].time_ms >= last_ms

    def _read_some(self, pool: ThreadPoolExecutor, first: int) -> None:
        files = self._order.files[first : first + _AT_ONCE]
        for number, (file, opened_file) in enumerate(zip(files, pool.map(self._opened, files), strict=True), first):
            if self._holds_all_since(self._order.last_ms[number]):
                return
            try:
                self._take_file(number, opened_file)
            except (IngestionError, UnreadableSketch, duckdb.Error, pa.ArrowException, OSError) as error:
                self._problems.append(FileProblem(path=file.path, problem=_problem_text(file.path, error)))
            finally:
                self._files.forget(number)

    def _opened(self, file: RegisteredFile) -> OpenedFile | Exception:
        try:
            return open_registered(self._storage, file)
        except (IngestionError, OSError) as error:
            return error

    def _take_file(self, number: int, opened_file: OpenedFile | Exception) -> None:
        if isinstance(opened_file, Exception):
            raise opened_file
        self._files.keep(number, opened_file)
        columns = opened_file.columns()
        if self._order.footer and number == 0:
            self._footer = read_footer(opened_file, self._order)
        statement, values = self._cells.statement(NumberedFiles.address(number), columns)
        rows = self._engine.execute(statement, values).fetchall()
        for column in columns:
            self._columns.setdefault(column.name, set()).add(column.type)
        self._read += 1
        for place, row in enumerate(rows):
            self._keep(self._cells.row(row, columns, number, place))

    def _keep(self, row: Row) -> None:
        if len(self._newest) < self._order.limit:
            heapq.heappush(self._newest, row)
        else:
            heapq.heappushpop(self._newest, row)

    def _answer(self, unread: int | None) -> RowsAnswer:
        names = list(self._columns)
        return RowsAnswer(
            columns=[RowsColumn(name=name, types=sorted(types)) for name, types in self._columns.items()],
            rows=[[row.values.get(name) for name in names] for row in sorted(self._newest, reverse=True)],
            problems=self._problems,
            files_read=self._read,
            footer=self._footer,
            unread_ms=None if unread is None or self._holds_all_since(unread) else unread,
        )


def open_locked_engine(files: NumberedFiles, count: int) -> duckdb.DuckDBPyConnection:
    """DuckDB with these files, and nothing else."""
    engine = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{_MEMORY_BYTES}B",
            "threads": 1,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        },
    )
    engine.register_filesystem(files)
    for setting in _settings(count):
        engine.execute(setting)
    return engine


def _settings(count: int) -> Iterator[str]:
    """In this order: what may be read can't be said once access is cut."""
    yield "SET temp_directory = ''"
    allowed = ", ".join(f"'{NumberedFiles.address(n)}'" for n in range(count))
    yield f"SET allowed_paths = [{allowed}]"
    yield "SET enable_external_access = false"
    yield "SET TimeZone = 'UTC'"
    yield "SET lock_configuration = true"


def _problem_text(path: str, error: Exception) -> str:
    if isinstance(error, duckdb.OutOfMemoryException):
        return "its rows take too much memory to be shown"
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text.removeprefix(f"{path} ")


def read_newest(order: RowsOrder) -> RowsAnswer:
    """Carry it out. Only what concerns all files alike is refused."""
    try:
        storage = open_deep_storage(order.deep_storage)
    except DeepStorageError as error:
        return RowsAnswer(refusal=str(error))
    return _Reading(order, storage).answer()


def main(orders: TextIO, answers: TextIO) -> None:
    """Answer one order."""
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    order = RowsOrder.model_validate_json(orders.readline())
    print(read_newest(order).model_dump_json(), file=answers, flush=True)


if __name__ == "__main__":
    keep_pandas_out()
    main(sys.stdin, sys.stdout)
