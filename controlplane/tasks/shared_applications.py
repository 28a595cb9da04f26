"""Applications of this host that serve many tasks, of small topics of one team. Their folders are all that is known.

A task that is handed over gets a folder as any other: with a process file that names the shared process, so that all
its tasks are found dead with it, and the same log under a second name. Nobody signals that process for one task's sake:
such a task ends by what its heartbeats are answered. See ``ingestion.spark.shared``.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import math
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

from controlplane.common.applications import SPARES, process_in, share_process, sharing_of
from controlplane.tasks import spares
from ingestion.specs.messages.spare import ORDERS, RECORD, TASKS, SpareOrder

logger = logging.getLogger(__name__)
MOST_TASKS = 200  # of one application: a hundred topics, each with its next task beside it
FRESH_S = 15.0  # one that takes orders touches its record each second
HUNG_S = 60.0
START_PATIENCE_S = 180.0
RETRY_S = 300.0
_LOG = "spark.log"


def new_name(team: int) -> str:
    """The name of another one: its folder's below that of tasks."""
    return f"{SPARES}/{_prefix(team)}{secrets.token_hex(4)}"


def team_of(name: str) -> int:
    """By the name that a task has of it."""
    return int(name.split("-")[2])


def _prefix(team: int | str) -> str:
    host = hashlib.sha256(settings.HOST_NAME.encode()).hexdigest()[:8]
    return f"shared-{host}-{team}-"


def folders(team: int | None = None) -> list[Path]:
    """Those of this host, of one team or of all."""
    return sorted((Path(settings.TASK_DIR) / SPARES).glob(f"{_prefix('*' if team is None else team)}*"))


def prepare(folder: Path, version: str) -> None:
    """Make the folder of one that is about to start. Raises ``OSError``."""
    spares.prepare(folder, version)
    (folder / TASKS).mkdir()


@contextmanager
def turn(team: int) -> Iterator[None]:
    """One launcher of this host at a time looks for a place for a task of the team. Raises ``OSError``."""
    root = Path(settings.TASK_DIR) / SPARES
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(root / f".{_prefix(team)}turn", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file open, too


def with_place(team: int, version: str) -> Path | None:
    """One that can take another task now."""
    return next(
        (f for f in folders(team) if _fits(f, version) and _age_s(f / RECORD) < FRESH_S and spares.is_ready(f)), None
    )


def _fits(folder: Path, version: str) -> bool:
    is_current = spares.record_of(folder)[0] == version
    return is_current and _lives(folder) and len(tasks_in(folder)) < MOST_TASKS


def tasks_in(folder: Path) -> list[str]:
    """The ids of tasks that it has, or is to take."""
    with suppress(OSError):
        return sorted(os.listdir(folder / TASKS))
    return []


def has_left(task_folder: Path) -> bool:
    """Whether a task was handed over to one that has ended with it since, whatever became of its last word."""
    name = sharing_of(task_folder)
    return bool(name) and not (task_folder.parent / SPARES / name / TASKS / task_folder.name).exists()


def is_starting(team: int, version: str) -> bool:
    """Whether one will be able to, soon."""
    return any(_fits(f, version) and not spares.was_ready(f) for f in folders(team))


def may_start(team: int) -> bool:
    """Whether one may be started: none of the team's has failed to start lately."""
    return _age_s(_failure_of(team)) >= RETRY_S


def _failure_of(team: int | str) -> Path:
    return Path(settings.TASK_DIR) / SPARES / f".{_prefix(team)}failed"


def _lives(folder: Path) -> bool:
    identity = process_in(folder)
    return identity is not None and identity.find() is not None


def _age_s(path: Path) -> float:
    """Since it was touched, or something was made in it; without end for what is not there."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return math.inf


def hand_over(application: Path, target: Path, order: SpareOrder) -> bool:
    """Let it serve a task whose folder is ``target``. False when it takes none any more. Within ``turn``."""
    mark = application / TASKS / order.task_id
    with spares.lock(application) as is_free:
        if not is_free:
            return False
        try:
            orders = os.open(application / ORDERS, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False  # it has closed, or died
        try:
            mark.touch()
            # One write of less than PIPE_BUF: all of it or nothing.
            os.write(orders, order.model_dump_json().encode() + b"\n")
        except OSError as error:
            mark.unlink(missing_ok=True)
            logger.warning("task %s could not be handed over: %s", order.task_id, error)
            return False
        finally:
            os.close(orders)
    # From here on the task is served, whatever becomes of its folder: its heartbeats say that it lives.
    with suppress(OSError):
        share_process(target, application)
        (target / _LOG).unlink(missing_ok=True)
        (target / _LOG).hardlink_to(application / _LOG)
    return True


def sweep() -> None:
    """Kill those that hang, remove what is left of dead ones. The logs stay with the tasks."""
    for folder in folders():
        patience_s = HUNG_S if spares.was_ready(folder) else START_PATIENCE_S
        identity = process_in(folder)
        if identity is None or identity.find() is None:
            _clear(folder)
        elif _age_s(folder / RECORD) > patience_s:
            logger.warning("the application %s of several topics does not answer, and is killed", folder.name)
            with suppress(OSError):
                os.killpg(identity.pid, signal.SIGKILL)


def _clear(folder: Path) -> None:
    if process_in(folder) is None and _age_s(folder) < FRESH_S:
        return  # another process of this host's worker is just starting it
    if not spares.was_ready(folder):
        _failure_of(team_of(folder.name)).touch()
        tail = spares.log_tail(folder)
        logger.warning("an application for several topics has ended; the next in %.0f s: %s", RETRY_S, tail)
    shutil.rmtree(folder, ignore_errors=True)
