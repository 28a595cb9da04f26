"""Bodies of requests, read only once somebody has asked for them who may.

Django's own handler takes a whole body from the connection, whatever its size, before anybody has looked at who sends
it. Here it is given the beginning, which the server has taken anyway, and the rest when a view reads it: by then the
view has asked who that is.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any

from django.core.exceptions import RequestAborted, RequestDataTooBig

from controlplane.common.client_gone import watch

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]

BEGINNING_BYTES = 64 * 1024
READ_S = 120.0  # how long a body may take
_MEBIBYTE = 1024 * 1024
_IN_MEMORY_BYTES = 2 * _MEBIBYTE
REST_PATHS = ("/api/", "/druid/")


def most_bytes(path: str) -> int:
    """How large a body may be: of publishes with what they quarantine, of a spec over REST, of the pages' forms."""
    if path.startswith("/internal/"):
        return 64 * _MEBIBYTE
    return 2 * _MEBIBYTE if path.startswith(REST_PATHS) else 8 * _MEBIBYTE


class Body:
    """What comes in with a request. Called, it waits for what comes after the body: that the client goes away."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._max_bytes = most_bytes(scope["path"])
        self._content_length = _content_length(scope)
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, "w+b")  # noqa: SIM115 - see close
        self._size = 0
        self._complete = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._gone = watch(scope)

    @property
    def is_complete(self) -> bool:
        """Whether all of it is here."""
        return self._complete.is_set()

    async def __call__(self) -> Mapping[str, Any]:
        await self._complete.wait()
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone.set()
        return message

    async def begin(self) -> None:
        """Take it if it is small, else no more than its beginning. Raises ``RequestAborted``."""
        if self._content_length is not None and self._content_length > BEGINNING_BYTES:
            return
        while not self.is_complete and self._size < BEGINNING_BYTES:
            await self._read_message()

    async def finish(self) -> None:
        """Take the rest. Raises ``RequestAborted``, ``RequestDataTooBig``, ``TimeoutError``."""
        if self._content_length is not None and self._content_length > self._max_bytes:
            raise RequestDataTooBig(f"The body is larger than {self._max_bytes} bytes.")
        async with asyncio.timeout(READ_S):
            while not self.is_complete:
                await self._read_message()

    async def _read_message(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise RequestAborted
        piece = message.get("body", b"")
        self._size += len(piece)
        if self._size > self._max_bytes:
            raise RequestDataTooBig(f"The body is larger than {self._max_bytes} bytes.")
        self._file.write(piece)
        if not message.get("more_body", False):
            self._file.seek(0)
            self._complete.set()

    # As a file, for Django's request, in a thread of the view's.

    def read(self, *args: int) -> bytes:
        return self._complete_body().read(*args)

    def readline(self, *args: int) -> bytes:
        return self._complete_body().readline(*args)

    def close(self) -> None:
        self._file.close()

    def _complete_body(self) -> IO[bytes]:
        if not self.is_complete:
            try:
                asyncio.run_coroutine_threadsafe(self.finish(), self._loop).result()
            except RequestAborted:
                raise OSError("the client went away") from None
        return self._file


def _content_length(scope: Scope) -> int | None:
    """The length that the headers say; None: it comes in pieces."""
    headers = dict(scope["headers"])
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        return None
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0
