"""A task that starts while the control plane is away waits for it: it has not failed by that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ingestion.client import http
from ingestion.client.errors import TaskOver, Unreachable
from ingestion.client.http import HttpControlPlane
from tests.support.indexer import assignment


@contextmanager
def control_plane(statuses: list[int], body: str) -> Iterator[HttpControlPlane]:
    """Answers one request after the other so; the last status stays. ``statuses`` is used up."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    client = HttpControlPlane(f"http://127.0.0.1:{server.server_address[1]}", "task", "token")
    try:
        yield client
    finally:
        client.close()
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("away", [502, 503, 504, 429])
def test_it_asks_again_until_it_is_answered(away: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "RETRY_PAUSE_S", 0.01)
    given = assignment(tmp_path).model_dump_json()
    with control_plane([away, away, 200], given) as client:
        assert client.assignment().model_dump_json() == given


def test_a_task_that_is_over_does_not_ask_again() -> None:
    statuses = [502, 404, 200]
    with control_plane(statuses, "") as client, pytest.raises(TaskOver):
        client.assignment()
    assert statuses == [200]


def test_it_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ASSIGNMENT_RETRY_S", 0.05)
    monkeypatch.setattr(http, "RETRY_PAUSE_S", 0.01)
    with control_plane([502], "") as client, pytest.raises(Unreachable, match="502"):
        client.assignment()
