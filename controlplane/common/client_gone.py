"""Whether the client of a request has closed its connection: for work that takes long before its answer begins."""

from __future__ import annotations

import threading
from typing import Any

from django.http import HttpRequest

_KEY = "headgate.client_gone"


def watch(scope: dict[str, Any]) -> threading.Event:
    """For the server: an event that it sets when the client of this connection is gone."""
    gone: threading.Event = scope.setdefault(_KEY, threading.Event())
    return gone


def is_gone(request: HttpRequest) -> bool:
    """Never true where no ASGI server serves the request."""
    gone = getattr(request, "scope", {}).get(_KEY)
    return gone is not None and bool(gone.is_set())
