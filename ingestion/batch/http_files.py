"""Files that a spec names by their addresses on the web: fetched whole, from where the address policy allows.

A name is resolved once for a request, all its addresses are checked, and one of them is connected to; where a redirect
leads is judged likewise. No proxy is asked. Time and size are bounded, whatever trickles in.
"""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Timer
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

from ingestion.batch.errors import InputRefused, InputUnreachable
from ingestion.specs.addresses import AddressPolicy, AddressRefused, AddressUnknown
from ingestion.specs.input_source import a_web_address

MOST_BYTES = 16 * 1024**3
LONGEST_S = 3600.0  # of one file
_SILENCE_S = 30.0
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_PASSES = (408, 425, 429)
_PORTS = {"http": 80, "https": 443}
_PIECE = 1 << 20


def fetch(url: str, policy: AddressPolicy, into: BinaryIO) -> None:
    """Write what is there. Raises ``InputRefused``, and ``InputUnreachable`` for what may pass."""
    end = time.monotonic() + LONGEST_S
    at = url
    for _ in range(_MOST_REDIRECTS + 1):
        leads_to = _fetched(url, at, policy, into, end)
        if leads_to is None:
            return
        try:
            onward = a_web_address(urljoin(at, leads_to))
        except ValueError:
            raise InputRefused(f"{url} can't be read: it leads to what is no address of the web.") from None
        if at.startswith("https:") and not onward.startswith("https:"):
            raise InputRefused(f"{url} can't be read: it leads from https to http.")
        at = onward
    raise InputRefused(f"{url} can't be read: it leads on more than {_MOST_REDIRECTS} times.")


def _fetched(url: str, at: str, policy: AddressPolicy, into: BinaryIO, end: float) -> str | None:
    """Where it leads on, or None when all has been written."""
    parts = urlsplit(at)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    connection = HTTPConnection(host, port, timeout=_SILENCE_S)
    try:
        connection.sock = raw = _connected(policy.resolve(host, port), port)
        cut = Timer(max(0.0, end - time.monotonic()), _shut, (raw,))
        cut.daemon = True
        cut.start()
        try:
            if parts.scheme == "https":
                connection.sock = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
            path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
            connection.request("GET", path, headers={"Accept-Encoding": "identity", "User-Agent": "Headgate"})
            return _taken(url, connection.getresponse(), into)
        finally:
            cut.cancel()
    except AddressRefused as refused:
        raise InputRefused(f"{url} can't be read: {refused}.") from None
    except AddressUnknown as unknown:
        raise InputUnreachable(f"{url} can't be read: {unknown}.") from None
    except (OSError, HTTPException, ValueError) as error:
        why = "it takes too long" if time.monotonic() >= end else f"no whole answer came ({type(error).__name__})"
        raise InputUnreachable(f"{url} can't be read: {why}.") from None
    finally:
        connection.close()


def _taken(url: str, answer: HTTPResponse, into: BinaryIO) -> str | None:
    if answer.status in _REDIRECTS and answer.getheader("Location"):
        return answer.getheader("Location")
    if answer.status != 200:
        said = f"{url} can't be read: the answer is {answer.status}."
        raise (InputUnreachable if answer.status >= 500 or answer.status in _PASSES else InputRefused)(said)
    size = 0
    while piece := answer.read(_PIECE):
        size += len(piece)
        if size > MOST_BYTES:
            raise InputRefused(f"{url} has more than {MOST_BYTES // 1024**3} GiB.")
        into.write(piece)
    if answer.length:  # that it has promised, and not sent
        raise InputUnreachable(f"{url} can't be read: it ended too early.")
    return None


def _connected(addresses: list[str], port: int) -> socket.socket:
    problem = OSError("no address")
    for address in addresses[:4]:
        try:
            return socket.create_connection((address, port), timeout=_SILENCE_S)
        except OSError as error:
            problem = error
    raise problem


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
