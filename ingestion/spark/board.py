"""The board: where the indexers of one application post their state each second and read their directive.

It lives in the driver, so that the control plane gets one heartbeat for all. Messages are JSON over an authenticated
``multiprocessing.connection``; nothing is unpickled.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

from pydantic import Field

from ingestion.specs.base import Message
from ingestion.specs.messages.protocol import Directive, IndexerStatus
from ingestion.task.control import Control
from ingestion.task.log import LINE_BUFFER

POST_INTERVAL_S = 1.0
DRIVER_LOST_S = 15.0


class Post(Message):
    """What an indexer posts."""

    status: IndexerStatus
    lines: list[str] = Field(default_factory=list)  # of its log, if the driver can't see them where they are written


@dataclass
class Board:
    """The driver's side. Thread-safe. Lines of indexers elsewhere are written to this process's standard error."""

    host: str = "127.0.0.1"
    authkey: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _listener: Listener = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _statuses: dict[int, tuple[float, IndexerStatus]] = field(default_factory=dict)
    _directives: dict[int, Directive] = field(default_factory=dict)
    _store_commits: bool = False
    _start_again: dict[int, int] = field(default_factory=dict)
    _closed: bool = False

    def __post_init__(self) -> None:
        self._listener = Listener((self.host, 0), backlog=256, authkey=self.authkey)
        threading.Thread(target=self._accept, name="board", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.address
        return str(host), int(port)

    def set_directive(self, number: int, directive: Directive) -> None:
        """What an indexer is to do from now on."""
        with self._lock:
            self._directives[number] = directive

    def note_store(self, commits: bool, start_again: dict[int, int] | None = None) -> None:
        """Whether the last heartbeat was answered, and its ``HeartbeatAnswer.start_again``."""
        with self._lock:
            self._store_commits, self._start_again = commits, start_again or {}

    def forget(self, number: int) -> None:
        """Drop an indexer's last status before it starts again."""
        with self._lock:
            self._statuses.pop(number, None)

    def status(self, number: int) -> tuple[float, IndexerStatus] | None:
        """Seconds since the indexer's last word, and the word."""
        with self._lock:
            last = self._statuses.get(number)
        return (time.monotonic() - last[0], last[1]) if last else None

    def close(self) -> None:
        """Accept no more connections. One that is open stays until its other end closes it."""
        self._closed = True
        with suppress(OSError, EOFError, AuthenticationError):
            Client(self.address, authkey=self.authkey).close()  # the thread that accepts wakes up, and ends

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        self._listener.close()

    def _serve(self, connection: Connection) -> None:
        try:
            while True:
                post = Post.model_validate_json(connection.recv_bytes())
                status = post.status
                if post.lines:
                    print(*post.lines, sep="\n", file=sys.stderr, flush=True)
                with self._lock:
                    self._statuses[status.number] = (time.monotonic(), status)
                    directive = self._directives.get(status.number, "continue")
                    start_again = self._start_again.get(status.number)
                    answer = {"directive": directive, "store_commits": self._store_commits, "start_again": start_again}
                connection.send_bytes(json.dumps(answer).encode())
        except (OSError, EOFError, ValueError):
            connection.close()


class Poster(threading.Thread):
    """The worker's side: posts the control's status, hands it the directive. Without a driver it says stop.

    ``with_lines``: posts what this process logs, too.
    """

    def __init__(self, control: Control, address: tuple[str, int], authkey: bytes, with_lines: bool = False) -> None:
        super().__init__(name="poster", daemon=True)
        self._control = control
        self._address = address
        self._authkey = authkey
        self._with_lines = with_lines
        self._done = threading.Event()

    def run(self) -> None:
        heard_at = time.monotonic()
        connection: Connection | None = None
        while not self._done.is_set():
            try:
                connection = connection or Client(self._address, authkey=self._authkey)
                self._post(connection)
                heard_at = time.monotonic()
            except (OSError, EOFError, AuthenticationError):
                connection = None
            if time.monotonic() - heard_at > DRIVER_LOST_S:
                self._control.update("stop", store_commits=False)
            self._done.wait(POST_INTERVAL_S)
        self._post_last(connection)

    def _post_last(self, connection: Connection | None) -> None:
        if connection is not None:
            try:
                self._post(connection)
                connection.close()
            except (OSError, EOFError):
                pass

    def _post(self, connection: Connection) -> None:
        lines = LINE_BUFFER.take() if self._with_lines else []
        try:
            connection.send_bytes(Post(status=self._control.status, lines=lines).model_dump_json().encode())
            answer = json.loads(connection.recv_bytes())
        except (OSError, EOFError):
            LINE_BUFFER.put_back(lines)
            raise
        self._control.update(**answer)

    def finish(self) -> None:
        """Post once more and end."""
        self._done.set()
        self.join(timeout=5)
