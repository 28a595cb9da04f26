"""Where files are written before they are uploaded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of one's own, removed at the end: in ``HEADGATE_SCRATCH`` where the launcher's machine has set it.

    What a killed process leaves there goes with its task; elsewhere the system's temporary folder is taken.
    """
    parent = os.environ.get("HEADGATE_SCRATCH")
    if parent:
        Path(parent).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headgate-indexer-", dir=parent or None) as folder:
        yield Path(folder)
