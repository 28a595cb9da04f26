"""A real FTP server on this machine, which can be stopped and started again at the same port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.ioloop import IOLoop
from pyftpdlib.servers import FTPServer

FTP_LOGIN = {"username": "segments", "password": "canary-of-ftp"}
_ALL_RIGHTS = "elradfmwMT"


class FtpServer:
    """``folder``: what it serves. ``location``: its URL."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._port = 0
        self.start()

    @property
    def location(self) -> str:
        return f"ftp://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Answers when this returns."""
        authorizer = DummyAuthorizer()
        authorizer.add_user(FTP_LOGIN["username"], FTP_LOGIN["password"], str(self.folder), perm=_ALL_RIGHTS)
        handler = type("Handler", (FTPHandler,), {"authorizer": authorizer, "log_prefix": ""})
        self._server = FTPServer(("127.0.0.1", self._port), handler, ioloop=IOLoop())
        self._port = self._server.socket.getsockname()[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            self._server.ioloop.loop(timeout=0.05, blocking=False)
        self._server.close_all()

    def stop(self) -> None:
        """Cuts every connection."""
        self._over.set()
        self._thread.join(10)


@contextmanager
def ftp_server(folder: Path) -> Iterator[FtpServer]:
    """One that is stopped at the end."""
    server = FtpServer(folder)
    try:
        yield server
    finally:
        server.stop()
