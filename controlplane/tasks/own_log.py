"""The log of a task that has no application: a line for each thing that was done for it."""

from __future__ import annotations

import logging
import os

from django.utils import timezone

from controlplane.tasks.launcher import log_of

_log = logging.getLogger(__name__)


def add_log_line(task_id: str, text: str, level: str = "INFO") -> None:
    """Add a line. A log that can't be written stops nothing."""
    path = log_of(task_id)
    line = f"{timezone.now():%Y-%m-%dT%H:%M:%S.%fZ} {level} {' '.join(text.split())}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644), "w") as log:
            log.write(line)
    except OSError as error:
        _log.warning("the log of task %s can't be written: %s", task_id, error.strerror)
