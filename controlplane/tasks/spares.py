"""Spares: applications of this host that wait for a task. Their folders are all that is known of them.

A spare serves one task and ends. Who holds the lock of its record may hand a task over to it, or end it; see
``ingestion.spark.spare``. It is handed over by moving its folder to the task's place: with it go the process file, the
log and the scratch. A link stays behind, since Spark and Python know their folder by its first name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from django.conf import settings

from controlplane.common.applications import SPARES, process_in, was_stopped
from controlplane.spark import spark_conf
from ingestion.specs.messages.spare import CLOSED, ORDERS, RECORD, SpareOrder

logger = logging.getLogger(__name__)
_TAIL_BYTES = 2_000


def new_name() -> str:
    """The name of another one of this host: its folder's below that of tasks."""
    return f"{SPARES}/{_host_mark()}-{secrets.token_hex(4)}"


def _host_mark() -> str:
    """Hosts may have one folder of tasks, and any letters in their names."""
    return hashlib.sha256(settings.HOST_NAME.encode()).hexdigest()[:8]


def folders() -> list[Path]:
    """Those of this host, oldest names first; links of spares that have a task are among them."""
    return sorted((Path(settings.TASK_DIR) / SPARES).glob(f"{_host_mark()}-*"))


def version_of(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """A mark that changes with all that a spare is started with: settings, Spark's defaults, the code."""
    code = Path(settings.BASE_DIR) / "ingestion"
    files = [(str(f), (s := f.stat()).st_mtime_ns, s.st_size) for f in sorted(code.rglob("*.py"))]
    parts = [list(command), dict(environment), spark_conf.operator_conf(), files]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def prepare(folder: Path, version: str) -> None:
    """Make the folder of a spare that is about to start. Raises ``OSError``."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir()
    with open(os.open(folder / RECORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"version": version, "since": time.time()}, file)


def record_of(folder: Path) -> tuple[str, float]:
    """With what it was started, and when, in seconds since 1970. Of a damaged record: nothing, long ago."""
    try:
        record = json.loads((folder / RECORD).read_text())
        return str(record["version"]), float(record["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0.0


def is_ready(folder: Path) -> bool:
    """Whether it has loaded everything, and waits."""
    return (folder / ORDERS).is_fifo()


def waiting() -> list[Path]:
    """Those that can take a task now."""
    return [f for f in folders() if not f.is_symlink() and is_ready(f) and (i := process_in(f)) and i.find()]


def was_ready(folder: Path) -> bool:
    """Whether it has been ready, or its host was stopped before."""
    return is_ready(folder) or (folder / CLOSED).exists() or was_stopped(folder)


@contextmanager
def lock(folder: Path) -> Iterator[bool]:
    """Whether it was free: nobody else hands over, and the spare itself does not end, until this is over."""
    try:
        record = os.open(folder / RECORD, os.O_RDONLY)
    except OSError:
        yield False
        return
    is_free = True
    try:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_free = False
    try:
        yield is_free
    finally:
        if is_free:
            fcntl.flock(record, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file open, too
        os.close(record)


def hand_over(version: str, target: Path, order: SpareOrder) -> bool:
    """Let a spare of this version serve a task whose folder is to be ``target``, which must not exist.

    False when there is none, or it died in between: what is in ``target`` then may be killed and used.
    """
    for folder in folders():
        if folder.is_symlink() or record_of(folder)[0] != version:
            continue
        with lock(folder) as is_free:
            identity = process_in(folder)
            # It may have been handed over since the look above: then the link leads to a task's folder.
            if not is_free or folder.is_symlink() or identity is None or not identity.find():
                continue
            try:
                orders = os.open(folder / ORDERS, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                continue  # it is not ready, or nobody reads any more
            try:
                folder.rename(target)
                folder.symlink_to(target.absolute())
                # One write of less than PIPE_BUF: all of it or nothing.
                os.write(orders, order.model_dump_json().encode())
                return True
            except OSError as error:
                logger.warning("a spare could not take task %s, which starts without it: %s", order.task_id, error)
                return False
            finally:
                os.close(orders)
    return False


def forget(task_folder: Path) -> bool:
    """Whether the process of this folder of a task was a spare's; asked once: nothing says so afterwards."""
    try:
        (task_folder / RECORD).unlink()
    except OSError:
        return False
    return True


def retire(folder: Path, number: signal.Signals) -> None:
    """Let it take no task from now on, and end by this signal. One that is being handed over is left alone."""
    with lock(folder) as is_free:
        identity = process_in(folder)
        process = identity.find() if identity is not None else None
        takes_none = is_free or not is_ready(folder)  # it may hang at its end, with the lock
        if process is None or not takes_none or folder.is_symlink() or not folder.exists():  # in this order: it moves
            return
        with suppress(OSError):
            (folder / ORDERS).rename(folder / CLOSED)
        with suppress(OSError, psutil.Error):
            if number == signal.SIGKILL:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)


def log_tail(folder: Path) -> str:
    """The end of its log, which says why it did not start."""
    try:
        return (folder / "spark.log").read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace")
    except OSError:
        return ""
