"""The process that looks through deep storage for files that nobody names, page by page, and deletes what it is told.

``python -m ingestion.segments.sweep``, spoken to through standard input and output
(``ingestion.specs.messages.deep_storage``). It needs no more memory than one interval's listing takes. Datasources
and intervals come in random order, so that runs that end early get everywhere in time.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TextIO

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.names import is_ours, may_be_datasource, may_be_interval
from ingestion.segments.stored_file import StoredFile
from ingestion.specs.messages.deep_storage import SweepEnd, SweepOrder, SweepPage, SweepVerdict, SweptFile

PAGE = 1000
FAILURES = 5  # folders in a row that can't be listed

Judge = Callable[[SweepPage], SweepVerdict]


class Sweep:
    """One run over one deep storage. ``judge`` says what of a page may go."""

    def __init__(self, storage: DeepStorage, order: SweepOrder, judge: Judge) -> None:
        self._storage = storage
        self._judge = judge
        self._before = order.now - order.grace
        self._deadline = time.monotonic() + order.seconds if order.seconds is not None else None
        self._end = SweepEnd()

    def run(self) -> SweepEnd:
        """Look at every file of Headgate's own."""
        try:
            self._sweep()
        except DeepStorageError as error:
            self._keep_refusal(error, complete=False)
        return self._end

    def _sweep(self) -> None:
        failures = 0
        for folder in self._intervals():
            if self._time_is_up():
                self._count(complete=False)
                return
            try:
                self._sweep_folder(folder)
                failures = 0
            except DeepStorageError as error:
                failures += 1
                if error.permanent or failures == FAILURES:
                    raise
                self._keep_refusal(error, complete=False)

    def _intervals(self) -> Iterator[str]:
        for datasource in _shuffled(self._storage.folders(), may_be_datasource):
            for interval in _shuffled(self._storage.folders(datasource), may_be_interval):
                yield f"{datasource}/{interval}"

    def _sweep_folder(self, folder: str) -> None:
        old = filter(self._is_old_and_ours, self._storage.files(folder))
        while page := [SweptFile(path=f.path, size_bytes=f.size_bytes) for f in islice(old, PAGE)]:
            for index in self._judge(SweepPage(files=page)).delete:
                self._delete(page[index])
            if self._time_is_up():
                return

    def _time_is_up(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _is_old_and_ours(self, file: StoredFile) -> bool:
        self._count(looked_at=1)
        if not is_ours(file.path):
            self._count(foreign=1)
            return False
        if file.modified is None or file.modified >= self._before:
            self._count(young=1)
            return False
        return True

    def _delete(self, file: SweptFile) -> None:
        try:
            self._storage.delete(file.path)
        except DeepStorageError as error:
            self._count(failed=1)
            self._keep_refusal(error)
        else:
            self._count(deleted=1, deleted_bytes=file.size_bytes)

    def _count(self, complete: bool = True, **more: int) -> None:
        sums = {name: getattr(self._end, name) + n for name, n in more.items()}
        self._end = self._end.model_copy(update={**sums, "complete": self._end.complete and complete})

    def _keep_refusal(self, error: DeepStorageError, complete: bool = True) -> None:
        self._count(complete=complete)
        if not self._end.error:
            self._end = self._end.model_copy(update={"error": str(error)})


def _shuffled(folders: list[str], is_wanted: Callable[[str], bool]) -> list[str]:
    chosen = [folder for folder in folders if is_wanted(folder)]
    random.shuffle(chosen)
    return chosen


def main(answers: TextIO, pages: TextIO) -> int:
    """Exit code 0 when all was looked at that there was time for."""

    def judge(page: SweepPage) -> SweepVerdict:
        print(page.model_dump_json(), file=pages, flush=True)
        return SweepVerdict.model_validate_json(_read_line(answers))

    order = SweepOrder.model_validate_json(_read_line(answers))
    try:
        end = Sweep(open_deep_storage(order.deep_storage), order, judge).run()
    except DeepStorageError as error:
        end = SweepEnd(complete=False, error=str(error))
    print(end.model_dump_json(), file=pages, flush=True)
    return 1 if end.error else 0


def _read_line(answers: TextIO) -> str:
    """What the other side says. It says nothing more when it has gone: then nothing is deleted any more."""
    line = answers.readline()
    if not line:
        sys.exit(1)
    return line


if __name__ == "__main__":
    sys.exit(main(sys.stdin, sys.stdout))
