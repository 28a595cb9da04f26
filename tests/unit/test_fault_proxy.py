"""The proxy of tests before several webs: who answers, when some of them are gone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2

from tests.support.fault_proxy import FaultProxy


class _Web(BaseHTTPRequestHandler):
    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        body = str(self.server.server_port).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def web() -> Iterator[ThreadingHTTPServer]:
    """One that answers with its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_webs_are_asked_in_turn_and_one_that_is_gone_is_passed_over() -> None:
    with ExitStack() as stack:
        one, two = stack.enter_context(web()), stack.enter_context(web())
        with web() as gone:
            dead = gone.server_port
        proxy = FaultProxy(dead)
        stack.callback(proxy.close)
        proxy.other_ports = [one.server_port, two.server_port]
        with httpx2.Client(base_url=proxy.url, trust_env=False) as client:
            said = Counter(client.get("/readyz").text for _ in range(9))
            assert set(said) == {str(one.server_port), str(two.server_port)} and said.total() == 9
            assert not proxy.refusals
            proxy.other_ports = []
            assert client.get("/readyz").status_code == 502
