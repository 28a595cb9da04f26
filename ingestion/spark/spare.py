"""A spare: an application that was started before there is a task for it. It has loaded everything, and waits.

1. The launcher locks the record in the spare's folder, moves the folder to the task's place, writes one line into the
   FIFO, and lets the lock go.
2. A spare ends only while it has the lock itself, so no order is written that nobody reads.
3. A folder that was moved, without an order, and nobody has the lock: the launcher has died in between. The spare then
   removes its process file, so that the host sees that the task was not started.
"""

from __future__ import annotations

import fcntl
import os
import select
import time
from contextlib import suppress
from pathlib import Path

from ingestion.specs.messages.spare import CLOSED, ORDERS, RECORD, SILENCE_S, SpareOrder
from ingestion.task.shutdown import Ending

_PERIOD_MS = 1000
_LONGEST_ORDER = 65_536


def wait_for_order(place: Path, ending: Ending) -> SpareOrder | None:
    """The task to serve, once there is one; None when it is to end without.

    ``place``: the spare's own folder. Raises ``OSError`` when that has no record.
    """
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    record = os.open(RECORD, os.O_RDONLY, dir_fd=folder)  # open until the process ends, and with it the lock
    os.mkfifo(ORDERS, 0o600, dir_fd=folder)
    # To write, too: else it would be at its end as soon as one who writes has closed it.
    orders = os.open(ORDERS, os.O_RDWR | os.O_NONBLOCK, dir_fd=folder)
    poller = select.poll()
    poller.register(orders, select.POLLIN)
    while True:
        if poller.poll(_PERIOD_MS):
            return _read(folder, orders)
        has_moved = _has_moved(place, folder)
        if (ending.is_requested or has_moved or _is_forgotten(record)) and _locks(record):
            if poller.poll(0):
                return _read(folder, orders)
            if has_moved:
                _unlink("pid", folder)
            with suppress(FileNotFoundError):
                os.rename(ORDERS, CLOSED, src_dir_fd=folder, dst_dir_fd=folder)
            return None


def _read(folder: int, orders: int) -> SpareOrder:
    line = os.read(orders, _LONGEST_ORDER)  # an order is shorter than what a pipe takes at once
    _unlink(ORDERS, folder)
    return SpareOrder.model_validate_json(line)


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _has_moved(place: Path, folder: int) -> bool:
    try:
        return os.lstat(place).st_ino != os.fstat(folder).st_ino
    except FileNotFoundError:
        return True


def _is_forgotten(record: int) -> bool:
    return time.time() - os.fstat(record).st_mtime > SILENCE_S


def _locks(record: int) -> bool:
    try:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
