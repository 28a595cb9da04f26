"""What one page is sent: which of its topics have changed, until its life is over."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from frontend.live.topics import Subscription

LIFE_S = 300.0  # then the page comes back, perhaps to another process; up to a fifth less, so that not all do at once
BEAT_S = 15.0  # a silent stream sends a comment, so that nothing in between takes it for dead
CHECKED_EVERY_S = 60.0  # whether the user may still hear it


class Stream:
    """One page's. ``allowed`` says anew what its user may hear, or None for nothing any more."""

    def __init__(self, subscription: Subscription, allowed: Callable[[], Awaitable[Subscription | None]]) -> None:
        self.subscription = subscription  # what its user may hear now
        self.moved: Callable[[], None] = lambda: None  # called when that has changed
        self._allowed = allowed
        self._pending: dict[str, None] = {}
        self._newest_id = ""  # of the newest change among them
        self._due = 0.0  # when they are sent
        self._must_check = False
        self._ended = False
        self._wake = asyncio.Event()

    def send(self, topics: Iterable[str], last_id: str, within_s: float = 0.0) -> None:
        """Send these, at any time within so many seconds."""
        if not self._pending:
            self._due = asyncio.get_running_loop().time() + random.uniform(0, within_s)  # noqa: S311 - a jitter
        self._pending |= dict.fromkeys(topics)
        self._newest_id = last_id
        self._wake.set()

    def require_check(self, user: int) -> None:
        """This user's teams or rights have changed."""
        if user == self.subscription.user:
            self._must_check = True
            self._wake.set()

    def end(self) -> None:
        """Now."""
        self._ended = True
        self._wake.set()

    async def events(self, last_id: str) -> AsyncIterator[bytes]:
        """What is sent, in the form of server-sent events. ``last_id``: of what was told before it began."""
        clock = asyncio.get_running_loop().time
        ends_at = clock() + LIFE_S * random.uniform(0.8, 1.0)  # noqa: S311 - a jitter
        checked_at = clock()
        yield f"retry: 2000\nid: {last_id}\nevent: open\ndata: \n\n".encode()
        while not self._ended and clock() < ends_at:
            await self._wait_until_due(min(BEAT_S, ends_at - clock()))
            if self._must_check or clock() - checked_at > CHECKED_EVERY_S:
                checked_at = clock()
                if not await self._still_allowed():
                    yield b"event: gone\ndata: \n\n"
                    return
            if self._ended:
                return
            yield self._message() if self._pending and self._due <= clock() else b": beat\n\n"

    def _message(self) -> bytes:
        topics, self._pending = sorted(self._pending), {}
        return f"id: {self._newest_id}\nevent: changed\ndata: {json.dumps(topics)}\n\n".encode()

    async def _wait_until_due(self, most_s: float) -> None:
        """Until there is something to send, to check or to end."""
        clock = asyncio.get_running_loop().time
        until = clock() + most_s
        while not (self._ended or self._must_check):
            left = (min(until, self._due) if self._pending else until) - clock()
            if left <= 0:
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(left):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _still_allowed(self) -> bool:
        self._must_check = False
        subscription = await self._allowed()
        if subscription is not None and subscription != self.subscription:
            self.subscription = subscription
            self.moved()
        return subscription is not None
