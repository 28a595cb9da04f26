"""An HTTP proxy before the control plane that fails on purpose: refuses, or loses answers after passing them on."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FaultProxy:
    """Listens on 127.0.0.1. ``fault`` applies to paths that contain ``where``: pass, refuse, lose_answer, cut.

    ``refuse`` answers 500 without passing on; ``lose_answer`` passes on and closes the connection without an answer;
    ``cut`` closes it at once. ``hits`` counts requests to which the fault was done, ``refusals`` answers of the
    upstream from 400 on, by status and last part of the path. Several upstreams are asked in turn; one that takes no
    connection is passed over, as a load balancer does.
    """

    def __init__(self, upstream_port: int) -> None:
        self.fault = "pass"
        self.where = "/publish"
        self.hits = 0
        self.refusals: Counter[str] = Counter()  # 502: it gave none
        self.upstream_port = upstream_port
        self.other_ports: list[int] = []
        self._turn = 0
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                proxy.handle(self)

            def do_POST(self) -> None:
                proxy.handle(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def set(self, fault: str) -> None:
        """From now on."""
        with self._lock:
            self.fault = fault
            self.hits = 0

    def await_silence(self) -> None:
        """Wait until half a second has passed without a request: what somebody had sent last is over."""
        before = -1
        while self.hits != before:
            before = self.hits
            time.sleep(0.5)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """One request, in its own thread."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        fault = self._fault_of(request.path)
        if fault == "refuse":
            _answer(request, 500, b"{}", "application/json")
            return
        if fault == "cut":
            request.close_connection = True
            return
        status, answer, kind = self._forward(request, body)
        if status >= 400:
            with self._lock:
                self.refusals[f"{status} {request.path.rstrip('/').rpartition('/')[2]}"] += 1
        if fault == "lose_answer":
            request.close_connection = True
            return
        _answer(request, status, answer, kind)

    def _fault_of(self, path: str) -> str:
        with self._lock:
            if self.fault == "pass" or self.where not in path:
                return "pass"
            self.hits += 1
            return self.fault

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes, str]:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "connection")}
        connection = self._connection()
        try:
            connection.request(request.command, request.path, body, {**headers, "Host": "127.0.0.1"})
            response = connection.getresponse()
            return response.status, response.read(), response.headers.get("Content-Type", "application/json")
        except OSError:
            return 502, b"{}", "application/json"
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        """To the next one that takes it, else to the last one asked: then it is the request that fails."""
        with self._lock:
            self._turn += 1
            ports = [self.upstream_port, *self.other_ports]
            first = self._turn % len(ports)
        for port in (*ports[first:], *ports[:first]):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with suppress(OSError):
                connection.connect()
                break
        return connection


def _answer(request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str) -> None:
    try:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
    except OSError:
        pass
