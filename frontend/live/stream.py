"""What one page is sent: which of its topics have changed, not too often, until its life is over."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from controlplane.common.changes import Change
from frontend.live.topics import EVERYTHING, Wanted

LIFE_S = 300.0  # then the page comes back, perhaps to another process; up to a fifth less, so that not all do at once
BEAT_S = 15.0  # a silent stream sends a comment, so that nothing in between takes it for dead
CHECKED_EVERY_S = 60.0  # whether the user may still hear it
LEAST_PACE_S = 1.0
MOST_PACE_S = 60.0
PAGES_A_SECOND = 3.0  # that all open pages together may ask for what goes on changing by itself


def pace_of(streams: int) -> float:
    """Seconds between two events that nobody waits for: the more pages are open, the longer."""
    return min(MOST_PACE_S, max(LEAST_PACE_S, streams / PAGES_A_SECOND))


class Stream:
    """One page's. ``allowed`` says anew what its user may hear, or None for nothing any more."""

    def __init__(self, wanted: Wanted, allowed: Callable[[], Awaitable[Wanted | None]]) -> None:
        self._wanted = wanted
        self._allowed = allowed
        self._pending: dict[str, None] = {}
        self._urgent = False
        self._doubted = False
        self._ended = False
        self._wake = asyncio.Event()

    @property
    def topics(self) -> tuple[str, ...]:
        """What it is for, as long as it lives."""
        return self._wanted.topics

    def hear(self, change: Change, about: Sequence[str]) -> None:
        """Keep what concerns the page until it is sent; ``about``: the change's topics, which the hub knows."""
        if change.user == self._wanted.user:
            self._doubted = True
            self._wake.set()
        topics = self._wanted.heard(change, about)
        if topics:
            self._pending |= dict.fromkeys(topics)
            self._urgent |= change.urgent
            self._wake.set()

    def hear_all(self) -> None:
        """Something may have been missed."""
        self._pending[EVERYTHING] = None
        self._wake.set()

    def end(self) -> None:
        """Now."""
        self._ended = True
        self._wake.set()

    async def events(self, last_id: Callable[[], str], pace: Callable[[], float]) -> AsyncIterator[bytes]:
        """What is sent, in the form of server-sent events."""
        clock = asyncio.get_running_loop().time
        ends_at = clock() + LIFE_S * random.uniform(0.8, 1.0)  # noqa: S311 - a jitter
        checked_at, sent_at = clock(), -MOST_PACE_S
        yield b"retry: 2000\nid: %s\nevent: open\ndata: \n\n" % last_id().encode()
        while not self._ended and clock() < ends_at:
            await self._waited(min(BEAT_S, ends_at - clock()))
            if self._doubted or clock() - checked_at > CHECKED_EVERY_S:
                checked_at = clock()
                if not await self._still_allowed():
                    yield b"event: gone\ndata: \n\n"
                    return
            if self._ended:
                return
            if not self._pending:
                yield b": beat\n\n"
                continue
            await self._paced(sent_at + pace() - clock())
            sent_at = clock()
            yield self._message(last_id())

    def _message(self, last_id: str) -> bytes:
        topics, self._pending, self._urgent = sorted(self._pending), {}, False
        return f"id: {last_id}\nevent: changed\ndata: {json.dumps(topics)}\n\n".encode()

    async def _waited(self, most_s: float) -> None:
        if not self._pending and not self._ended:
            self._wake.clear()
            await self._awake(most_s)

    async def _paced(self, left_s: float) -> None:
        """Hold back what is not urgent; what comes meanwhile goes along."""
        until = asyncio.get_running_loop().time() + left_s
        while not (self._urgent or self._ended or self._doubted):
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                return
            self._wake.clear()
            await self._awake(left)

    async def _awake(self, most_s: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, most_s)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _still_allowed(self) -> bool:
        self._doubted = False
        wanted = await self._allowed()
        if wanted is not None:
            self._wanted = wanted
        return wanted is not None
