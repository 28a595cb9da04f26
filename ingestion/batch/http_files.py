"""Files that a spec names by their addresses on the web: fetched whole, from where the address policy allows.

A name is resolved once for a request, all its addresses are checked, and one of them is connected to; where a redirect
leads is judged likewise. No proxy is asked. Time and size are bounded, whatever trickles in.

What is fetched is what was found: a file's ETag, Last-Modified and length are asked for before anything is read, by a
request like those that fetch (servers and signed addresses need not know HEAD), of whose answer only the head is read.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import BinaryIO, TypeVar
from urllib.parse import urljoin, urlsplit

from ingestion.batch.errors import InputChanged, InputRefused, InputUnreachable
from ingestion.batch.files import InputFile
from ingestion.specs.inputs.input_source import check_web_address
from ingestion.specs.kafka.addresses import AddressPolicy, AddressRefused, AddressUnknown
from ingestion.task.http_connections import open_http, port_of

MAX_BYTES = 16 * 1024**3
TIMEOUT_S = 3600.0  # of one file
_READ_TIMEOUT_S = 30.0
_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_TRANSIENT_STATUSES = (408, 425, 429)
_CHUNK_BYTES = 1 << 20
_ASSUMED_BYTES = 64 * 1024 * 1024  # bytes, whatever a file has: each is one Spark task's
_VALIDATOR_HEADERS = ("ETag", "Last-Modified", "Content-Length")
_MAX_REQUESTS_AT_ONCE = 8
_RETRY_AFTER_S = (0.2, 1.0)  # nobody else asks again for what is found
_MAX_SHOWN = 100  # characters of a header

Validators = tuple[tuple[str, str], ...]
Used = TypeVar("Used")


def find_web_files(urls: Sequence[str], policy: AddressPolicy) -> list[InputFile]:
    """Those at these addresses, each once. Raises ``InputRefused``, ``InputUnreachable``."""
    with ThreadPoolExecutor(_MAX_REQUESTS_AT_ONCE) as pool:
        requests = [(url, pool.submit(_fetch_validators, url, policy)) for url in dict.fromkeys(urls)]
        try:
            return [InputFile(url, _ASSUMED_BYTES, 0, state.result()) for url, state in requests]
        finally:
            pool.shutdown(cancel_futures=True)


def _fetch_validators(url: str, policy: AddressPolicy) -> Validators:
    for wait_s in _RETRY_AFTER_S:
        with suppress(InputUnreachable):
            return _get_following_redirects(url, policy, time.monotonic() + _READ_TIMEOUT_S, _validators_in)
        time.sleep(wait_s)
    return _get_following_redirects(url, policy, time.monotonic() + _READ_TIMEOUT_S, _validators_in)


def _validators_in(answer: HTTPResponse) -> Validators:
    return tuple((name, value) for name in _VALIDATOR_HEADERS if (value := answer.getheader(name)))


def fetch(input_file: InputFile, policy: AddressPolicy, into: BinaryIO) -> None:
    """Write what is there. Raises ``InputRefused``, ``InputChanged``, and ``InputUnreachable`` for what may pass."""

    def take(answer: HTTPResponse) -> None:
        _check_unchanged(input_file, _validators_in(answer))
        _download(input_file.path, answer, into)

    _get_following_redirects(input_file.path, policy, time.monotonic() + TIMEOUT_S, take)


def _check_unchanged(input_file: InputFile, current: Validators) -> None:
    """What only one of both answers says is not compared."""
    before = dict(input_file.state_headers)
    for name, value in current:
        if before.get(name, value) != value:
            raise InputChanged(
                f"{input_file.path} has changed since the task began (its {name} was {before[name][:_MAX_SHOWN]}, "
                f"and is {value[:_MAX_SHOWN]}); submit the task again."
            )


def _get_following_redirects(url: str, policy: AddressPolicy, end: float, use: Callable[[HTTPResponse], Used]) -> Used:
    """What ``use`` makes of the answer, wherever the address leads; until ``end`` of the monotonic clock."""
    at = url
    for _ in range(_MAX_REDIRECTS + 1):
        leads_to, used = _get(url, at, policy, end, use)
        if used is not None:
            return used[0]
        try:
            onward = check_web_address(urljoin(at, leads_to))
        except ValueError:
            raise InputRefused(f"{url} can't be read: it redirects to an address that is not http or https.") from None
        if at.startswith("https:") and not onward.startswith("https:"):
            raise InputRefused(f"{url} can't be read: it redirects from https to http.")
        at = onward
    raise InputRefused(f"{url} can't be read: it redirects more than {_MAX_REDIRECTS} times.")


def _get(
    url: str, at: str, policy: AddressPolicy, end: float, use: Callable[[HTTPResponse], Used]
) -> tuple[str, tuple[Used] | None]:
    """Where it leads on, or what was made of its answer."""
    parts = urlsplit(at)
    port = port_of(parts)
    try:
        with open_http(_connect(policy.resolve(parts.hostname or "", port), port), parts, end) as connection:
            path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
            connection.request("GET", path, headers={"Accept-Encoding": "identity", "User-Agent": "Headgate"})
            answer = connection.getresponse()
            leads_to = answer.getheader("Location") if answer.status in _REDIRECTS else None
            if leads_to:
                return leads_to, None
            _check_status(url, answer.status)
            used = use(answer)
        if time.monotonic() >= end:
            raise TimeoutError  # of what does not say how long it is, a part looks like the whole
        return "", (used,)
    except AddressRefused as refused:
        raise InputRefused(f"{url} can't be read: {refused}.") from None
    except AddressUnknown as unknown:
        raise InputUnreachable(f"{url} can't be read: {unknown}.") from None
    except (OSError, HTTPException, ValueError) as error:
        why = "it takes too long" if time.monotonic() >= end else f"no whole answer came ({type(error).__name__})"
        raise InputUnreachable(f"{url} can't be read: {why}.") from None


def _check_status(url: str, status: int) -> None:
    if status != 200:
        message = f"{url} can't be read: the answer is {status}."
        raise (InputUnreachable if status >= 500 or status in _TRANSIENT_STATUSES else InputRefused)(message)


def _download(url: str, answer: HTTPResponse, into: BinaryIO) -> None:
    size = 0
    while piece := answer.read(_CHUNK_BYTES):
        size += len(piece)
        if size > MAX_BYTES:
            raise InputRefused(f"{url} has more than {MAX_BYTES // 1024**3} GiB.")
        into.write(piece)
    if answer.length:  # that it has promised, and not sent
        raise InputUnreachable(f"{url} can't be read: it ended too early.")


def _connect(addresses: list[str], port: int) -> socket.socket:
    problem = OSError("no address")
    for address in addresses[:4]:
        try:
            return socket.create_connection((address, port), timeout=_READ_TIMEOUT_S)
        except OSError as error:
            problem = error
    raise problem
