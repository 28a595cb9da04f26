"""The port on which worker and beat answer Prometheus: of this process, and of the worker's children."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from celery.signals import beat_init, worker_ready
from django.conf import settings

from controlplane.common.exposition import CHALLENGE, PATHS, REFUSED, TEXT, page_of, shows_token
from controlplane.common.measures import process_registry

logger = logging.getLogger(__name__)
_TAKEN = (
    "HEADGATE_METRICS_PORT: port %s can't be opened (%s). This process has no metrics; its jobs run. Give worker and "
    "beat different ports if they are on one machine."
)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    timeout = 10  # seconds: who connects and says nothing keeps no thread

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are no news."""


@worker_ready.connect
@beat_init.connect
def open_port(**_: Any) -> WSGIServer | None:
    """If the settings name one. Jobs run also where it is taken."""
    if not settings.METRICS or not settings.METRICS_PORT:
        return None
    try:
        server = make_server("", settings.METRICS_PORT, answer, _Server, _Quiet)
    except OSError as error:
        logger.error(_TAKEN, settings.METRICS_PORT, error.strerror)
        return None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A WSGI application: the metrics of this process and its children."""
    head, body = environ["REQUEST_METHOD"] == "HEAD", b""
    if environ["PATH_INFO"].rstrip("/") not in PATHS:
        start_response("404 Not Found", [("Content-Type", TEXT)])
    elif not head and environ["REQUEST_METHOD"] != "GET":
        start_response("405 Method Not Allowed", [("Content-Type", TEXT), ("Allow", "GET, HEAD")])
    elif not shows_token(environ.get("HTTP_AUTHORIZATION", ""), settings.METRICS_TOKEN):
        start_response("401 Unauthorized", [("Content-Type", TEXT), *CHALLENGE.items()])
        body = REFUSED.encode()
    else:
        page = page_of(process_registry(), environ.get("HTTP_ACCEPT", ""), environ.get("HTTP_ACCEPT_ENCODING", ""))
        start_response("200 OK", [*page.headers.items()])
        body = page.body
    return [] if head else [body]
