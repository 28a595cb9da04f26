"""The Spark data sources' way to a control plane: the token goes to it, and to nobody that it names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headgate.publishes.client import ControlPlane, Refused


@contextmanager
def site(status: int, location: str, heard: list[str]) -> Iterator[str]:
    """Answers every request so; keeps the tokens that it hears."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_carry_the_token_away(status: int) -> None:
    own: list[str] = []
    others: list[str] = []
    with site(200, "", others) as elsewhere, site(status, elsewhere, own) as address:
        client = ControlPlane(address, "secret")
        with pytest.raises(Refused, match=str(status)):
            client.datasource("flights")
    assert (own, others) == (["Bearer secret"], [])
