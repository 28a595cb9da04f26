"""What the doctor says of a Spark master that is there and does not answer all that it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from controlplane.operations.doctor.findings import FAIL
from controlplane.operations.doctor.outside import check_spark


class Halting(BaseHTTPRequestHandler):
    """Says that it is alive, and hangs up when it is asked for its page."""

    def do_GET(self) -> None:
        if self.path != "/json/":
            self.close_connection = True
            return
        body = json.dumps({"status": "ALIVE", "workers": [], "activeapps": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def master(settings: Any) -> Iterator[str]:
    """Its page's address. The same port stands for its own: it only has to take a connection."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Halting)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    here = f"127.0.0.1:{server.server_address[1]}"
    settings.SPARK_MASTER, settings.SPARK_MASTER_WEB = f"spark://{here}", [f"http://{here}"]
    try:
        yield f"http://{here}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_that_does_not_answer_is_a_finding(master: str) -> None:
    [finding] = [f for f in check_spark() if f.applies]
    assert finding.state == FAIL
    assert finding.found.startswith(f"the page of the master {master} does not answer: ")
    assert "Try again" in finding.advice
