"""A task's log, searched: lines with a text, of a level and above. Indexers of a cluster write into it too."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import redis
from django.utils import timezone

from controlplane.tasks import host_logs
from controlplane.tasks.models import Task
from controlplane.tasks.selectors import task_log_tail

SEARCHED_BYTES = 4 * 1024 * 1024  # the end of a log
MAX_LINES = 500
# Of Spark's lines, and of our own.
_LEVEL = re.compile(
    r"\b(TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b|\blevel=(debug|info|warning|error|critical)\b"
)
_RANK = {"TRACE": 0, "DEBUG": 0, "INFO": 1, "WARN": 2, "WARNING": 2, "ERROR": 3, "CRITICAL": 3, "FATAL": 3}


@dataclass(frozen=True)
class LogMatches:
    """What matches."""

    lines: list[tuple[int, str]]  # the last ones: number in what was searched, text
    matching: int
    searched: int  # lines in all

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


def search_log(task: Task, text: str = "", level: str = "") -> LogMatches:
    """``text``: any part of a line, whatever its case. ``level``: at least that one; what a line with a level is
    followed by, such as a stack trace, belongs to it."""
    lines = task_log_tail(task, SEARCHED_BYTES).splitlines()
    needle = text.casefold()
    hits = [(n, line) for n, line, rank in _ranked(lines) if rank >= _RANK.get(level, -1) and needle in line.casefold()]
    return LogMatches(hits[-MAX_LINES:], len(hits), len(lines))


def _ranked(lines: Iterable[str]) -> Iterator[tuple[int, str, int]]:
    rank = 1
    for number, line in enumerate(lines, 1):
        match = _LEVEL.search(line[:200])
        if match:
            rank = _RANK[(match[1] or match[2]).upper()]
        yield number, line, rank


_log = logging.getLogger(__name__)


def add_log_line(task_id: str, text: str, level: str = "INFO") -> None:
    """Add a line. A log that can't be written stops nothing."""
    host = Task.objects.filter(pk=task_id).values_list("host", flat=True).first() or ""
    line = f"{timezone.now():%Y-%m-%dT%H:%M:%S.%fZ} {level} {' '.join(text.split())}\n"
    try:
        host_logs.append(host, task_id, line)
    except (OSError, redis.RedisError) as error:
        _log.warning("the log of task %s can't be written: %s", task_id, error)
