"""The process that deletes segments' files, page by page, as it is told.

``python -m ingestion.segments.deletion``, spoken to through standard input and output
(``ingestion.specs.messages.deep_storage``). A file that is not there counts as deleted: who was killed after it had
gone asks once more.
"""

from __future__ import annotations

import sys
from typing import TextIO

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.names import is_ours
from ingestion.specs.messages.deep_storage import DeletedPage, DeleteOrder, DeletePage

FAILURES = 5  # files in a row for which deep storage was not well: the rest of the page is not tried


def delete(storage: DeepStorage, page: DeletePage) -> DeletedPage:
    """Delete what is Headgate's; the rest stays, and counts as failed."""
    failed: list[int] = []
    error, in_a_row = "", 0
    for index, path in enumerate(page.paths):
        if in_a_row == FAILURES:
            failed.append(index)
            continue
        try:
            if not is_ours(path):
                raise DeepStorageError(f"{path!r} is not the path of a segment's file", True)
            storage.delete(path)
            in_a_row = 0
        except DeepStorageError as refused:
            failed.append(index)
            error, in_a_row = error or str(refused), 0 if refused.permanent else in_a_row + 1
    return DeletedPage(failed=failed, error=error)


def main(orders: TextIO, answers: TextIO) -> None:
    """Answer until nothing more is asked."""

    def tell(answer: DeletedPage) -> None:
        print(answer.model_dump_json(), file=answers, flush=True)

    try:
        storage = open_deep_storage(DeleteOrder.model_validate_json(orders.readline()).deep_storage)
    except DeepStorageError as error:
        tell(DeletedPage(error=str(error)))
        return
    tell(DeletedPage())
    for line in orders:
        tell(delete(storage, DeletePage.model_validate_json(line)))


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
