"""Tasks' logs as files of this host's folder of tasks."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from controlplane.tasks.launcher import log_of


def read(task_id: str, offset: int, max_bytes: int) -> tuple[int, bytes]:
    """How long the log is, and bytes of it; a negative offset counts from its end. Without a log: 0 and nothing."""
    path = _log_path(task_id)
    if path is None or max_bytes <= 0:
        return 0, b""
    try:
        # O_NOFOLLOW, O_NONBLOCK: never a link out of the folder, never a pipe that blocks.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as log:
            size = os.fstat(log.fileno()).st_size
            log.seek(min(size, offset if offset >= 0 else max(0, size + offset)))
            return size, log.read(max_bytes)
    except OSError:
        return 0, b""


def append(task_id: str, line: str) -> None:
    """Add a line. Raises ``OSError``."""
    path = log_of(task_id)
    if not is_inside(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644), "w") as log:
        log.write(line)


def is_inside(path: Path) -> bool:
    """Whether it is the log of a folder right below that of tasks, by its name alone."""
    return path.parent.parent == Path(settings.TASK_DIR) and path.parent.name not in ("", ".", "..")


def _log_path(task_id: str) -> Path | None:
    """The log's path; None where it would lie outside of the tasks' folder, links resolved."""
    root = Path(settings.TASK_DIR).resolve()
    path = log_of(task_id)
    try:
        folder = path.parent.resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    # The id is part of the path: one that climbs out, or a link in its place, leads elsewhere than to root/<id>.
    return folder / path.name if folder.parent == root and folder.name == task_id else None
