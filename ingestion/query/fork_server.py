"""The process that waits for SQL: ``python -m ingestion.query.fork_server``, see ``ingestion.fork_server``."""

from __future__ import annotations

import socket
from contextlib import suppress

from ingestion.fork_server import serve_forks
from ingestion.query import running
from ingestion.query.engine import warm_up


def answer(connection: socket.socket) -> None:
    """One statement. Who asked may be gone."""
    with suppress(BrokenPipeError, ConnectionResetError):
        orders, answers = connection.makefile("rb"), connection.makefile("wb")
        running.answer(orders, answers)


if __name__ == "__main__":
    warm_up()
    serve_forks(answer)
