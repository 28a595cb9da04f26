"""Structured log lines that say which datasource, task and indexer they are about. No secret ever reaches one."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import structlog

LINES_PER_S = 20  # lines of one process that are handed on; more at once, if there were fewer before
MAX_WAITING = 200
LONGEST_LINE = 4_000  # characters of a line that is handed on
MAX_KINDS = 20


class LineBuffer:
    """The last lines of this process, until they are handed on. Thread-safe; never more than ``MAX_WAITING``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self._free = float(MAX_WAITING)
        self._updated_at = clock()
        self._dropped = 0

    def add(self, line: str) -> None:
        """Keep it, or count it."""
        with self._lock:
            now = self._clock()
            self._free = min(float(MAX_WAITING), self._free + (now - self._updated_at) * LINES_PER_S)
            self._updated_at = now
            if self._free < 1 or len(self._waiting) >= MAX_WAITING:
                self._dropped += 1
                return
            self._free -= 1
            self._waiting.append(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …")

    def take(self) -> list[str]:
        """Those that wait; at their end how many there was no room for."""
        with self._lock:
            lines = list(self._waiting)
            self._waiting.clear()
            dropped, self._dropped = self._dropped, 0
        return [*lines, f"({dropped} more lines were not handed on)"] if dropped else lines

    def put_back(self, lines: list[str]) -> None:
        """They were not heard: the newest of them wait again."""
        with self._lock:
            room = MAX_WAITING - len(self._waiting)
            self._waiting.extendleft(reversed(lines[-room:] if room else []))
            self._dropped += max(0, len(lines) - room)


LINE_BUFFER = LineBuffer()


class _Printer(structlog.PrintLogger):
    """To standard error, and to ``LINE_BUFFER``."""

    def msg(self, message: str) -> None:
        super().msg(message)
        LINE_BUFFER.add(message)

    log = debug = info = warn = warning = fatal = failure = err = error = critical = exception = msg


def configure(**everywhere: Any) -> None:
    """One line an event, ``key=value``, to standard error. ``everywhere``: what each line of this process says."""

    def add(_: Any, __: str, event: Any) -> Any:
        return {**event, **everywhere}

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            add,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], drop_missing=True),
        ],
        logger_factory=lambda *_: _Printer(sys.stderr),
        cache_logger_on_first_use=False,
    )


def logger_for(**context: Any) -> Any:
    """A logger whose lines carry the context."""
    return structlog.get_logger().bind(**context)


class OngoingProblem:
    """One thing that fails for a while: logged when it begins, for each new reason, and when it is over.

    Whoever tries again meets it at each attempt; numbers in a reason make no new one.
    """

    def __init__(self, log: Any, subject: str) -> None:
        self._log = log
        self._subject = subject
        self._kinds: set[str] = set()

    def report_failure(self, reason: str) -> None:
        """It fails."""
        kind = re.sub(r"\d+", "", reason)
        if kind not in self._kinds and len(self._kinds) < MAX_KINDS:
            self._kinds.add(kind)
            self._log.warning(self._subject, reason=reason)

    def report_recovery(self) -> None:
        """It does not fail."""
        if self._kinds:
            self._kinds.clear()
            self._log.info(f"no more: {self._subject}")
