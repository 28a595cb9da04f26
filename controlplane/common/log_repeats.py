"""Log lines that say again and again that something is away: one a minute, with how many there were."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping

EVERY_S = 60.0
MAX_KINDS = 1000


class Repeats(logging.Filter):
    """Lets a warning or an error through, and others of its kind only after a minute.

    Of one kind are those of one logger with the same words, but for numbers, or of one task with the same exception.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._last_logged: dict[tuple[object, ...], tuple[float, int]] = {}  # kind → when last, how often since

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        with self._lock:
            return self._is_first(record)

    def _is_first(self, record: logging.LogRecord) -> bool:
        kind, now = _kind(record), self._clock()
        last, held_back = self._last_logged.get(kind, (-EVERY_S, 0))
        if now - last < EVERY_S:
            self._last_logged[kind] = (last, held_back + 1)
            return False
        if len(self._last_logged) >= MAX_KINDS:
            self._last_logged.clear()
        self._last_logged[kind] = (now, 0)
        if held_back:
            record.msg = f"{record.getMessage()} (and {held_back} more times since it was last said)"
            record.args = None
        return True


def _kind(record: logging.LogRecord) -> tuple[object, ...]:
    exception = record.exc_info[0] if record.exc_info else None
    # Celery says of which of its tasks by what it fills in, beside a new id each time and the exception's text.
    task = record.args.get("name") if isinstance(record.args, Mapping) else None
    words = record.msg if exception and task else re.sub(r"\d+", "", record.getMessage())
    return record.name, words, exception, task
