"""A way to a server that a test can take away."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Forwarder:
    """Passes connections on to a server until it is closed, as a network does. ``port``: where; 0: anywhere."""

    def __init__(self, target: str, port: int = 0) -> None:
        host, _, of_target = target.partition(":")
        self._target = (host, int(of_target))
        self._listening = socket.create_server(("127.0.0.1", port))
        self._open: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                ours, _ = self._listening.accept()
                theirs = socket.create_connection(self._target)
                self._open += [ours, theirs]
                for one, other in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)

    def close(self) -> None:
        # An accept that is under way would keep the port open.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        for one in (self._listening, *self._open):
            one.close()
