"""The process that compares files in deep storage with what was registered of them, one after the other.

``python -m ingestion.segments.verification``, spoken to through standard input and output
(``ingestion.specs.messages.deep_storage``). It holds a mebibyte of a file at a time.
"""

from __future__ import annotations

import sys
from typing import TextIO

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DamagedSegment, DeepStorageError
from ingestion.segments.reader import verify
from ingestion.specs.messages.deep_storage import RegisteredFile, Verified, VerifyOrder


def main(orders: TextIO, answers: TextIO) -> None:
    """Answer until nothing more is asked."""

    def tell(answer: Verified) -> None:
        print(answer.model_dump_json(), file=answers, flush=True)

    try:
        storage = open_deep_storage(VerifyOrder.model_validate_json(orders.readline()).deep_storage)
    except DeepStorageError as error:
        tell(Verified(refusal=str(error)))
        return
    tell(Verified())
    for line in orders:
        tell(_verify_file(storage, RegisteredFile.model_validate_json(line)))


def _verify_file(storage: DeepStorage, file: RegisteredFile) -> Verified:
    try:
        verify(storage, file)
    except DamagedSegment as error:
        return Verified(damage=str(error))
    except DeepStorageError as error:
        return Verified(refusal=str(error))
    return Verified()


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
