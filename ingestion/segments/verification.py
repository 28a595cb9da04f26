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


def main(given: TextIO, told: TextIO) -> None:
    """Answer until nothing more is asked."""

    def tell(answer: Verified) -> None:
        print(answer.model_dump_json(), file=told, flush=True)

    try:
        storage = open_deep_storage(VerifyOrder.model_validate_json(given.readline()).deep_storage)
    except DeepStorageError as error:
        tell(Verified(refusal=str(error)))
        return
    tell(Verified())
    for line in given:
        tell(_verified(storage, RegisteredFile.model_validate_json(line)))


def _verified(storage: DeepStorage, file: RegisteredFile) -> Verified:
    try:
        verify(storage, file)
    except DamagedSegment as error:
        return Verified(damage=str(error))
    except DeepStorageError as error:
        return Verified(refusal=str(error))
    return Verified()


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
