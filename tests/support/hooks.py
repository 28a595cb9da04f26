"""A real web server on loopback that takes webhooks, and can do what theirs do: be slow, say no, or send elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    """One request. ``headers``: by their names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@dataclass
class Hook:
    """``answer``: status and headers of the answers. ``holds``: they wait until it is set."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answer: tuple[int, dict[str, str]] = (200, {})
    body: bytes = b"ok"
    holds: threading.Event | None = None
    came: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[str]:
        return [got.told["event"] for got in self.got]


@contextmanager
def hook_server() -> Iterator[Hook]:
    """Serves until the block ends."""
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            hook.got.append(Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            hook.came.set()
            if hook.holds is not None:
                hook.holds.wait(60)
            status, headers = hook.answer
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(hook.body)
            except OSError:
                pass  # who asked has gone

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        if hook.holds is not None:
            hook.holds.set()
        server.shutdown()
        server.server_close()
        thread.join()
