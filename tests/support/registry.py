"""A schema registry that speaks the REST API of Confluent's, on a port of this machine, from memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class SchemaRegistry:
    """``schemas``: id → answer; ``subjects``: (subject, version) → answer. ``status``: answer everything so instead."""

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    status: int = 200
    statuses: dict[int, int] = field(default_factory=dict)  # how it answers for a schema, by id
    asked: list[str] = field(default_factory=list)
    port: int = 0
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the port it had before if it was up before."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = registry.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, path: str) -> tuple[int, Any]:
        self.asked.append(path)
        if self.status != 200:
            return self.status, {"error_code": self.status, "message": "secret of another service"}
        match urlsplit(path).path.strip("/").split("/"):
            case ["schemas", "types"]:
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case ["schemas", "ids", number] if int(number) in self.statuses:
                status = self.statuses[int(number)]
                return status, {"error_code": status, "message": "none"}
            case ["schemas", "ids", number]:
                found = self.schemas.get(int(number))
                return (200, found) if found else (404, {"error_code": 40403, "message": "Schema not found"})
            case ["subjects", subject, "versions", version]:
                found = self.subjects.get((subject, int(version)))
                return (200, found) if found else (404, {"error_code": 40402, "message": "Version not found"})
        return 404, {"message": "no such page"}


@contextmanager
def running() -> Iterator[SchemaRegistry]:
    registry = SchemaRegistry()
    registry.start()
    try:
        yield registry
    finally:
        registry.stop()


def framed(schema_id: int, message: bytes, head: int = 0) -> bytes:
    """A message in the registry's wire format."""
    return bytes([head]) + schema_id.to_bytes(4) + message
