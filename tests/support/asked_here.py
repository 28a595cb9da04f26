"""Processes of the data plane that a test asks within its own: each would take a second to start.

What they are sent and what they answer goes through the same messages. That the process itself starts and answers is
shown by ``test_check_specs.py`` and by ``test_on_s3`` of ``test_cleanup_orphans.py``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import pytest

from controlplane.segments import orphans
from controlplane.tasks import checking
from ingestion.segments import sweep
from ingestion.specs.messages.checking import CheckAnswer, CheckOrder
from ingestion.task import check_spec


def check_specs_here(patch: pytest.MonkeyPatch) -> None:
    """What only the data plane can check of a spec is checked in this process."""
    patch.setattr(checking, "_asked", _checked)


def sweep_here(patch: pytest.MonkeyPatch) -> None:
    """Deep storage is looked through by a thread of this process."""
    patch.setattr(orphans, "conversation", _swept)


def _checked(order: CheckOrder) -> CheckAnswer:
    sent = CheckOrder.model_validate_json(order.model_dump_json())
    return CheckAnswer.model_validate_json(CheckAnswer(issues=check_spec.find_issues(sent)).model_dump_json())


@contextmanager
def _swept(module: str) -> Iterator[tuple[TextIO, TextIO]]:
    assert module == sweep.__name__
    its_input, given = _pipe()
    told, its_output = _pipe()

    def run() -> None:
        with its_input, its_output, suppress(BrokenPipeError):
            sweep.main(its_input, its_output)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield given, told
    finally:
        given.close()  # at the end of its input it ends
        told.close()
        thread.join()


def _pipe() -> tuple[TextIO, TextIO]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "r"), os.fdopen(writing, "w")
