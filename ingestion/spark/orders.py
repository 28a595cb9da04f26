"""What a shared application has in its folder to be given tasks: a FIFO of orders, and a record with a lock."""

from __future__ import annotations

import fcntl
import os
import select
from pathlib import Path

from ingestion.specs.messages.spare import CLOSED, ORDERS, RECORD, SpareOrder

_CHUNK = 65_536


class Orders:
    """A line of JSON for each task. Raises ``OSError`` where the folder has no record."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._record = os.open(place / RECORD, os.O_RDONLY)  # open until the process ends, and with it the lock
        self._unread = b""
        self._closed = False
        os.mkfifo(place / ORDERS, 0o600)
        # To write, too: else it would be at its end as soon as one who writes has closed it.
        self._pipe = os.open(place / ORDERS, os.O_RDWR | os.O_NONBLOCK)
        self._poller = select.poll()
        self._poller.register(self._pipe, select.POLLIN)

    def take(self, timeout_s: float) -> list[SpareOrder]:
        """Those that have come; waits for the first. It says too that orders are taken."""
        os.utime(self._record)
        if not self._poller.poll(timeout_s * 1000):
            return []
        *lines, self._unread = (self._unread + os.read(self._pipe, _CHUNK)).split(b"\n")
        return [SpareOrder.model_validate_json(line) for line in lines]

    def close(self) -> bool:
        """Let nobody write any more. False while somebody is writing: ask again. What was written can be taken."""
        if not self._closed:
            try:
                fcntl.flock(self._record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            (self._place / ORDERS).rename(self._place / CLOSED)
            self._closed = True
        return True
