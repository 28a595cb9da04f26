"""The process that tries deep storage with a file of its own: writes, reads, lists and deletes it.

``python -m ingestion.segments.probe``, spoken to through standard input and output
(``ingestion.specs.messages.deep_storage``). A file is written beside its name and renamed where the storage does that.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TextIO

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.specs.messages.deep_storage import Probed, ProbeOrder, local_folder

FOLDER = "headgate-probe"


def main(orders: TextIO, answers: TextIO) -> None:
    """Answer the one order."""
    location = ProbeOrder.model_validate_json(orders.readline()).deep_storage
    done: list[str] = []
    try:
        _try(open_deep_storage(location), done)
        answer = Probed(done=done, free_bytes=_free_bytes(location))
    except (DeepStorageError, OSError) as error:
        answer = Probed(done=done, error=str(error))
    print(answer.model_dump_json(), file=answers, flush=True)


def _try(storage: DeepStorage, done: list[str]) -> None:
    relative, content = f"{FOLDER}/{uuid.uuid4()}.probe", uuid.uuid4().bytes * 4096
    with tempfile.TemporaryDirectory(prefix="headgate-probe-") as folder:
        local = Path(folder, "probe")
        local.write_bytes(content)
        storage.put(local, relative)
    done.append("write")
    try:
        with storage.open(relative) as file:
            if file.read() != content:
                raise DeepStorageError("what was read is not what was written", True)
        done.append("read")
        if relative not in [file.path for file in storage.files(FOLDER)]:
            raise DeepStorageError("the file that was written is not in the list of its folder", True)
        done.append("list")
    finally:
        storage.delete(relative)
    if storage.exists(relative):
        raise DeepStorageError("the file is still there after it was deleted", True)
    done.append("delete")


def _free_bytes(location: str) -> int | None:
    folder = local_folder(location)
    return None if folder is None else shutil.disk_usage(folder).free


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
