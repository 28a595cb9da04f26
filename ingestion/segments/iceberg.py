"""The process that writes the files of an Iceberg snapshot into deep storage, page by page, as it is told.

``python -m ingestion.segments.iceberg``, spoken to through standard input and output
(``ingestion.specs.messages.iceberg``). Files that were written before an error stay: they are orphans.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.iceberg_files import manifest_bytes, manifest_list_bytes
from ingestion.segments.names import iceberg_path
from ingestion.specs.messages.iceberg import ManifestList, ManifestPage, SnapshotOrder, WrittenFile, WrittenFiles

_NICENESS = 10  # publishes on the same machine go first
_STORERS = 8  # they mostly wait for deep storage


class SnapshotWriter:
    """Writes the files of one snapshot. Raises ``DeepStorageError``."""

    def __init__(self, order: SnapshotOrder, storage: DeepStorage, scratch: Path) -> None:
        self._order = order
        self._storage = storage
        self._scratch = scratch

    def manifests(self, page: ManifestPage) -> list[WrittenFile]:
        """Those of a page, several at once."""
        contents = [(m.start, m.end, manifest_bytes(self._order, m)) for m in page.manifests]
        with ThreadPoolExecutor(_STORERS) as pool:
            return list(pool.map(lambda content: self._store(*content), contents))

    def manifest_list(self, listed: ManifestList) -> list[WrittenFile]:
        return [self._store(listed.start, listed.end, manifest_list_bytes(self._order, listed.manifests))]

    def _store(self, start: datetime, end: datetime, content: bytes) -> WrittenFile:
        file = uuid4()
        local = self._scratch / str(file)
        local.write_bytes(content)
        path = iceberg_path(self._order.datasource, (start, end), file)
        self._storage.put(local, path)
        local.unlink()
        return WrittenFile(path=path, length=len(content))


def main(orders: TextIO, answers: TextIO) -> None:
    """Answer until the manifest list is written, or something can't be."""

    def tell(files: Sequence[WrittenFile] = (), error: str = "") -> None:
        print(WrittenFiles(files=list(files), error=error).model_dump_json(), file=answers, flush=True)

    try:
        order = SnapshotOrder.model_validate_json(orders.readline())
        storage = open_deep_storage(order.deep_storage)
        tell()
        with tempfile.TemporaryDirectory() as scratch:
            writer = SnapshotWriter(order, storage, Path(scratch))
            for line in orders:
                is_page = line.startswith('{"manifests"')
                tell(
                    writer.manifests(ManifestPage.model_validate_json(line))
                    if is_page
                    else writer.manifest_list(ManifestList.model_validate_json(line))
                )
    except DeepStorageError as error:
        tell(error=str(error))


if __name__ == "__main__":
    os.nice(_NICENESS)
    main(sys.stdin, sys.stdout)
