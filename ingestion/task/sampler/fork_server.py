"""The process that waits for samples: ``python -m ingestion.task.sampler.fork_server``; see `ingestion.fork_server`."""

from __future__ import annotations

import socket

from ingestion.fork_server import serve_forks
from ingestion.task.sampler.answering import answer_line, limit_memory


def answer(connection: socket.socket) -> None:
    """One order, one answer."""
    with connection.makefile("r", encoding="utf-8") as orders, connection.makefile("w", encoding="utf-8") as answers:
        answer_line(orders, answers)


if __name__ == "__main__":
    limit_memory()
    serve_forks(answer)
