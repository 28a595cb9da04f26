"""A folder in which the processes of Celery's worker keep what they count, so that the main one can add it up.

To be made before ``prometheus_client`` is imported: that looks for the folder once.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

from controlplane.common.environment import text

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def share_values() -> None:
    """Make it in a worker that is to answer Prometheus, unless it was given one. Other processes are alone."""
    answers = text("HEADGATE_METRICS_PORT", "0").strip() not in ("", "0")
    if "worker" not in sys.argv or not answers or os.environ.get(FOLDER_VARIABLE):
        return
    folder = tempfile.mkdtemp(prefix="headgate-metrics-")
    os.environ[FOLDER_VARIABLE] = folder
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a child that ends
        shutil.rmtree(folder, ignore_errors=True)
