"""A token endpoint that knows one client; its tokens are signed by nobody."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

CLIENT, SECRET = "reader", "s3cret-of-reader"


@dataclass
class TokenEndpoint:
    """Where it is, and what it was asked: path and form of each request."""

    url: str
    asked: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)

    def login(self, servers: str, **more: Any) -> dict[str, Any]:
        """Kafka's properties, under librdkafka's names."""
        return {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.token.endpoint.url": self.url,
            **more,
        }


@contextmanager
def token_endpoint() -> Iterator[TokenEndpoint]:
    """``/token`` gives tokens, ``/moved`` leads to it, and any other path is not found."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
            told.asked.append((self.path, form))
            login = b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            if self.path == "/moved":
                self._answer(302, {}, Location=told.url)
            elif self.path != "/token":
                self._answer(404, {"error": "nothing here"})
            elif self.headers.get("Authorization") != f"Basic {login}":
                self._answer(401, {"error": "invalid_client"})
            else:
                self._answer(200, {"access_token": unsigned(300), "token_type": "Bearer", "expires_in": 300})

        def _answer(self, status: int, body: dict[str, Any], **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                "Content-Length": str(len(data)),
                "Content-Type": "application/json",
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    told = TokenEndpoint(f"http://127.0.0.1:{server.server_port}/token")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def unsigned(lifetime_s: int) -> str:
    """A token that nobody has signed."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": CLIENT, "iat": now, "exp": now + lifetime_s})
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."
