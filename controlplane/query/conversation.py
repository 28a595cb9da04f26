"""A connection to the process of one query: lines and chunks, until the process ends or somebody cancels."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress

from controlplane.common.ready_process import ProcessDied, exit_code
from ingestion.specs.base import Message

_PIECE = 256 * 1024
_CHECK_S = 0.5  # between two looks whether somebody has cancelled


class Cancelled(Exception):
    """Somebody does not want the answer any more."""


class Conversation:
    """Closing it ends the process. Its reads raise ``ProcessDied`` and ``Cancelled``."""

    def __init__(self, connection: socket.socket, is_cancelled: Callable[[], bool]) -> None:
        self._connection = connection
        self._is_cancelled = is_cancelled
        self._received = bytearray()
        self._checked_at = time.monotonic()
        connection.settimeout(_CHECK_S)

    def send(self, message: Message) -> None:
        """The process may be dead: the next read says so."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connection.setblocking(True)
            self._connection.sendall(message.model_dump_json().encode() + b"\n")
            self._connection.settimeout(_CHECK_S)

    def read_line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            self._receive()
        return self._take(end + 1)

    def read_chunk(self) -> bytes:
        """The next chunk; empty at the end of the result."""
        length = int(self.read_line())
        while len(self._received) < length:
            self._receive()
        return self._take(length)

    def close(self) -> None:
        self._connection.close()

    def _take(self, length: int) -> bytes:
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken

    def _receive(self) -> None:
        self.check()
        try:
            piece = self._connection.recv(_PIECE)
        except TimeoutError:
            return
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise ProcessDied(exit_code(self._received))
        self._received += piece

    def check(self) -> None:
        """Raises ``Cancelled``. Also while rows come without a pause; cheap."""
        if time.monotonic() - self._checked_at >= _CHECK_S:
            self._checked_at = time.monotonic()
            if self._is_cancelled():
                raise Cancelled
