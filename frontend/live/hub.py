"""One subscription for all streams of a process.

It begins with the first stream and ends with the last one. While Valkey is away it tries again and again; what may have
been missed meanwhile is told as ``*``: look at everything.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import signal
import threading
import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from controlplane.common.changes import CHANNEL, Change
from frontend.live.stream import Stream
from frontend.live.topics import topics_of

logger = logging.getLogger(__name__)
REMEMBERED = 2_000  # changes, for pages that come back
AGAIN_S = 2.0
ASKS_EVERY_S = 20.0  # a silent connection is tried so often


class Hub:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._streams: set[Stream] = set()
        self._by_topic: dict[str, set[Stream]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._process = secrets.token_hex(4)  # numbers are this process's: another one knows nothing of them
        self._numbers = itertools.count(1)
        self._last = 0
        self._past: deque[tuple[int, Change]] = deque(maxlen=REMEMBERED)
        self.closing = False

    @property
    def last_id(self) -> str:
        """Of what was told last."""
        return f"{self._process}-{self._last}"

    @property
    def streams(self) -> int:
        return len(self._streams)

    def add(self, stream: Stream, last_event_id: str) -> None:
        """A page has come, or come back: then it is told what it has missed."""
        self._streams.add(stream)
        for topic in stream.topics:
            self._by_topic.setdefault(topic, set()).add(stream)
        if self._listener is None or self._listener.done():
            self._past.clear()
            self._listener = asyncio.get_running_loop().create_task(self._listen())
        if last_event_id:
            self._catch_up(stream, last_event_id)

    def remove(self, stream: Stream) -> None:
        """It has gone. The last one turns off the light."""
        self._streams.discard(stream)
        for topic in stream.topics:
            listening = self._by_topic.get(topic, set())
            listening.discard(stream)
            if not listening:
                self._by_topic.pop(topic, None)
        if not self._streams and self._listener is not None:
            self._listener.cancel()
            self._listener = None

    def close(self) -> None:
        """The process ends: so do all streams, at once."""
        self.closing = True
        for stream in self._streams:
            stream.end()

    def hear(self, change: Change) -> None:
        """Hand it to those whom it concerns: of hundreds of changes a second most streams need not be asked."""
        self._last = next(self._numbers)
        self._past.append((self._last, change))
        about = topics_of(change)
        for stream in self._streams if change.user else self._concerned(about):
            stream.hear(change, about)

    def _concerned(self, about: Sequence[str]) -> set[Stream]:
        return set().union(*(self._by_topic.get(topic, ()) for topic in about))

    def _catch_up(self, stream: Stream, last_event_id: str) -> None:
        process, _, number = last_event_id.partition("-")
        known = process == self._process and number.isdecimal() and len(number) < 18
        if not known or (self._past and int(number) < self._past[0][0] - 1) or int(number) > self._last:
            stream.hear_all()
            return
        for at, change in self._past:
            if at > int(number):
                stream.hear(change, topics_of(change))

    async def _listen(self) -> None:
        missed = False
        while True:
            try:
                async with redis.asyncio.Redis.from_url(
                    settings.REDIS_URL, socket_connect_timeout=AGAIN_S, health_check_interval=ASKS_EVERY_S
                ) as client:
                    await self._listen_to(client, missed)
            except (RedisError, OSError, TimeoutError) as error:
                logger.warning("pages hear of no changes until Valkey is back: %s", error)
            missed = True
            await asyncio.sleep(AGAIN_S)

    async def _listen_to(self, client: Any, missed: bool) -> None:
        async with client.pubsub() as channel:
            await channel.subscribe(CHANNEL)
            if missed:
                for stream in self._streams:
                    stream.hear_all()
            while True:
                message = await channel.get_message(ignore_subscribe_messages=True, timeout=ASKS_EVERY_S)
                change = Change.decoded(message["data"]) if message else None
                if change is not None:
                    self.hear(change)


_hubs: dict[int, Hub] = {}  # by event loop: a process that serves has one


def hub() -> Hub:
    """That of the running event loop."""
    loop = asyncio.get_running_loop()
    if id(loop) not in _hubs:
        _hubs.clear()  # those of loops that are gone
        _hubs[id(loop)] = Hub()
        _end_with_the_process(_hubs[id(loop)], loop)
    return _hubs[id(loop)]


def _end_with_the_process(made: Hub, loop: asyncio.AbstractEventLoop) -> None:
    """A server that is told to end waits for open answers, and these would not end by themselves for minutes."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, _ending(made, loop, before))


def _ending(
    made: Hub, loop: asyncio.AbstractEventLoop, before: Callable[[int, types.FrameType | None], Any]
) -> Callable[[int, types.FrameType | None], None]:
    def handle(number: int, frame: types.FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(made.close)
        before(number, frame)

    return handle
