"""Connections to servers of the web that end in time, whatever trickles in."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from threading import Timer
from urllib.parse import SplitResult

_PORTS = {"http": 80, "https": 443}


def port_of(parts: SplitResult) -> int:
    """The port of an address, or its scheme's."""
    return parts.port or _PORTS[parts.scheme]


@contextmanager
def open_http(line: socket.socket, parts: SplitResult, end: float) -> Iterator[HTTPConnection]:
    """HTTP over this line, by TLS where the address says so; it is cut off at ``end`` of the monotonic clock.

    Each read has a timeout, but many small ones would never end: so the line does. What was cut off may look like an
    end: whoever reads to the end looks at the clock afterwards.
    """
    host = parts.hostname or ""
    kind: type[HTTPConnection] = HTTPConnection
    if parts.scheme == "https":
        kind = HTTPSConnection  # which says no port where it is the usual one: signed addresses have none
        # Not by the line before, which is an empty shell from here on; and what breaks off has not ended.
        line = ssl.create_default_context().wrap_socket(
            line, server_hostname=host, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
    connection = kind(host, port_of(parts))
    connection.sock = line
    cut = Timer(max(0.0, end - time.monotonic()), _shut_down, (line,))
    cut.daemon = True
    cut.start()
    try:
        if isinstance(line, ssl.SSLSocket):
            line.do_handshake()
        yield connection
    finally:
        cut.cancel()
        connection.close()


def _shut_down(line: socket.socket) -> None:
    with suppress(OSError):
        # Not TLS's own, after which the rest would be read as plain bytes.
        socket.socket.shutdown(line, socket.SHUT_RDWR)
