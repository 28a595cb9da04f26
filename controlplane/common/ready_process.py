"""A module of the data plane that has loaded all it needs, and waits: see ``ingestion.fork_server``."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from django.conf import settings

_PIECE = 256 * 1024


class ProcessDied(Exception):
    """The process that took the order ended without an answer."""

    def __init__(self, code: int) -> None:
        self.code = code  # negative: the signal that killed it
        super().__init__(f"ended with {code}")


class ReadyProcess:
    """Started when it is first needed, once more when it is found dead; it ends with this process. Thread-safe."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        self._module = module
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """None when none runs."""
        with self._lock:
            return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Have it load what it needs; it need not be waited for."""
        with self._lock:
            self._ensure_started()

    def stop(self) -> None:
        """It, and all that it has forked, end."""
        with self._lock:
            if self._orders is not None and self._process is not None:
                self._orders.close()
                self._process.wait()
            self._orders = self._process = None

    def request(self, order: str, within_s: float) -> str:
        """The answer to an order of one line. Raises ``ProcessDied``, ``TimeoutError``, ``OSError`` (no start)."""
        deadline = time.monotonic() + within_s
        with self.connect() as ours:
            ours.settimeout(within_s)
            with suppress(BrokenPipeError, ConnectionResetError):  # its exit code is waiting then
                ours.sendall(order.encode() + b"\n")
            return _read_answer(ours, deadline)

    def connect(self) -> socket.socket:
        """A connection to a fork of its own, which ends when it is closed. Raises ``OSError`` (no start)."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._hand_over(theirs)
            except OSError:
                ours.close()
                raise
        return ours

    def _hand_over(self, connection: socket.socket) -> None:
        with self._lock:
            try:
                socket.send_fds(self._ensure_started(), [b"+"], [connection.fileno()])
            except (BrokenPipeError, ConnectionResetError):
                self._orders = None
                socket.send_fds(self._ensure_started(), [b"+"], [connection.fileno()])

    def _ensure_started(self) -> socket.socket:
        """The socket for orders. With the lock held."""
        if self._orders is not None and self._process is not None and self._process.poll() is None:
            return self._orders
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                cwd=settings.BASE_DIR,
                env={**self._environment, "PYTHONPATH": str(settings.BASE_DIR)},
                stdin=theirs.fileno(),
            )
        self._orders = ours
        return ours


def _read_answer(connection: socket.socket, deadline: float) -> str:
    answer = bytearray()
    while not answer.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        try:
            piece = connection.recv(_PIECE)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise ProcessDied(exit_code(answer))
        answer += piece
    return answer.decode()


def exit_code(answer: bytes | bytearray) -> int:
    """What the process that forks has written after the last bytes of a fork."""
    found = re.search(rb"-?\d{1,3}$", bytes(answer[-4:]))
    return int(found[0]) if found else 1  # none: the process that forks is gone too
