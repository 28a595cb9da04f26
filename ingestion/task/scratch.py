"""Where files are written before they are uploaded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of one's own, removed at the end: in ``HEADGATE_SCRATCH`` on the machine of the launcher, which sets it.

    On a Spark worker it is in the application's folder below its ``SPARK_LOCAL_DIRS``. What a killed process leaves in
    either goes with the task; elsewhere the system's temporary folder is taken.
    """
    parent = os.environ.get("HEADGATE_SCRATCH") or os.environ.get("SPARK_EXECUTOR_DIRS", "").split(os.pathsep)[0]
    if parent:
        Path(parent).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headgate-indexer-", dir=parent or None) as folder:
        yield Path(folder)
