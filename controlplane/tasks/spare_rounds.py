"""What each host does for its spares, every two seconds. The folders say it all: nothing of it is in the store.

1. A spare that fits is touched, so that it goes on waiting. One that is too old, was started with other settings or
   other code, or is one too many, is ended.
2. What a dead one left is removed. After one that never was ready, no other is started for a while.
3. If one is missing, it is started, once no task of this host is starting: its JVM would take processors from that.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import redis
from celery.signals import worker_shutting_down
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from controlplane.common.applications import process_in
from controlplane.tasks import launcher, spare_reports, spares
from controlplane.tasks.models import Task
from ingestion.specs.messages.spare import RECORD

logger = logging.getLogger(__name__)
LIFETIME_S = 3600.0
KILL_GRACE_S = 10.0
PATIENCE_S = 180.0  # to become ready
RETRY_S = 300.0
CALM = timedelta(seconds=10)  # since the last launch: a task that starts needs the processors longer than its heartbeat
_ending_since: dict[str, float] = {}
_not_before = 0.0
_report_at = 0.0


@worker_shutting_down.connect
def stop(**_: Any) -> None:
    """Start no more: the worker ends, and with it perhaps its applications."""
    global _not_before
    _not_before = float("inf")


def run(now: float) -> None:
    """One round. ``now`` is of the monotonic clock."""
    wanted = settings.SPARE_APPLICATIONS if launcher.has_spares() else 0
    found = spares.folders()
    if not wanted and not found:
        return
    version = launcher.spare_version() if wanted else ""
    kept = 0
    for folder in found:
        if folder.is_symlink():  # asked first: a folder that moves meanwhile is left alone
            if _process(folder) is None:
                folder.unlink(missing_ok=True)
        elif _process(folder) is None:
            kept += _clear(folder, now)
        elif kept < wanted and _fits(folder, version):
            kept += 1
            with suppress(OSError):  # it is being handed over
                os.utime(folder / RECORD)
        else:
            _end(folder, now)
    _report(now)
    if kept < wanted and now >= _not_before and not _is_starting():
        _start(now)


def _report(now: float) -> None:
    """For pages."""
    global _report_at
    if now < _report_at:
        return
    _report_at = now + spare_reports.PERIOD_S
    try:
        spare_reports.store(spares.waiting())
    except redis.RedisError as error:
        logger.warning("pages do not know which applications wait here: %s", error)


def _start(now: float) -> None:
    global _not_before
    try:
        launcher.start_spare()
    except OSError as error:
        _not_before = now + RETRY_S
        logger.warning("an application that is to wait for tasks could not be started: %s", error)


def _process(folder: Path) -> psutil.Process | None:
    identity = process_in(folder)
    return None if identity is None else identity.find()


def _fits(folder: Path, version: str) -> bool:
    started_with, since = spares.record_of(folder)
    age_s = time.time() - since
    is_late = age_s > PATIENCE_S and not spares.is_ready(folder)
    return started_with == version and 0 <= age_s < LIFETIME_S and not is_late and folder.name not in _ending_since


def _end(folder: Path, now: float) -> None:
    asked_at = _ending_since.setdefault(folder.name, now)
    spares.retire(folder, signal.SIGKILL if now - asked_at >= KILL_GRACE_S else signal.SIGTERM)


def _clear(folder: Path, now: float) -> int:
    """Remove what is left of one whose process has ended. 1 if another worker of this host is just starting it."""
    global _not_before
    _, since = spares.record_of(folder)
    if process_in(folder) is None and time.time() - since < KILL_GRACE_S:
        return 1
    was_asked = _ending_since.pop(folder.name, None) is not None
    if since and not was_asked and not spares.was_ready(folder):
        _not_before = now + RETRY_S
        tail = spares.log_tail(folder)
        logger.warning("an application that was to wait for tasks has ended; the next in %.0f s: %s", RETRY_S, tail)
    shutil.rmtree(folder, ignore_errors=True)  # of a link it removes nothing
    return 0


def _is_starting() -> bool:
    """Whether a task of this host was launched just now, or has not begun to read."""
    now = timezone.now()
    waits = Q(last_heartbeat_at=None, launched_at__gt=now - settings.TASK_START_TIMEOUT)
    return Task.objects.active().filter(Q(launched_at__gt=now - CALM) | waits, host=settings.HOST_NAME).exists()
