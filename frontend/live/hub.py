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
from collections.abc import Callable
from typing import Any

import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from controlplane.common.changes import CHANNEL, Change
from frontend.live.audience import Audience, pace_of
from frontend.live.stream import Stream
from frontend.live.topics import EVERYTHING, AudienceKey, topics_of

logger = logging.getLogger(__name__)
PAST_CHANGES = 2_000  # changes, for pages that come back
RETRY_S = 2.0
MAX_DIGITS = 18  # of a number
HEALTH_CHECK_S = 20.0  # a silent connection is tried so often


class Hub:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._streams: dict[Stream, Audience] = {}
        self._audiences: dict[AudienceKey, Audience] = {}
        self._by_topic: dict[str, set[Audience]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._process = secrets.token_hex(4)  # numbers are this process's: another one knows nothing of them
        self._numbers = itertools.count(1)
        self._last = 0
        self._past: deque[tuple[int, Change]] = deque(maxlen=PAST_CHANGES)
        self._is_subscribed = False
        self.closing = False

    @property
    def last_id(self) -> str:
        """Of what was told last."""
        return f"{self._process}-{self._last}"

    @property
    def streams(self) -> int:
        return len(self._streams)

    def streams_of(self, user: int) -> int:
        """How many pages of this user's hear."""
        return sum(stream.subscription.user == user for stream in self._streams)

    @property
    def number(self) -> int | None:
        """Of what was heard last; None while nothing is heard."""
        return self._last if self._is_subscribed else None

    def number_of(self, event_id: str) -> int | None:
        """Of an event of this process; None for any other."""
        process, _, number = event_id.partition("-")
        is_own = process == self._process and number.isdecimal() and len(number) < MAX_DIGITS
        return int(number) if is_own and int(number) <= self._last else None

    def add(self, stream: Stream, last_event_id: str) -> None:
        """A page has come, or come back: then it is told what it has missed."""
        self._join(stream)
        stream.moved = lambda: self._move(stream)
        if self._listener is None or self._listener.done():
            self._past.clear()
            self._listener = asyncio.get_running_loop().create_task(self._listen())
        if last_event_id:
            self._catch_up(stream, last_event_id)

    def remove(self, stream: Stream) -> None:
        """It has gone. The last one turns off the light."""
        self._leave(stream)
        if not self._streams and self._listener is not None:
            self._listener.cancel()
            self._listener, self._is_subscribed = None, False

    def close(self) -> None:
        """The process ends: so do all streams, at once."""
        self.closing = True
        for stream in self._streams:
            stream.end()

    def handle_change(self, change: Change) -> None:
        """Hand it to those whom it concerns: of hundreds of changes a second most audiences need not be asked."""
        self._last = next(self._numbers)
        self._past.append((self._last, change))
        if change.user:
            for stream in self._streams:
                stream.require_check(change.user)
        about = topics_of(change)
        for audience in set().union(*(self._by_topic.get(topic, ()) for topic in about)):
            audience.add_change(change, about)

    def _join(self, stream: Stream) -> None:
        key = stream.subscription.audience_key
        if key not in self._audiences:
            audience = Audience(stream.subscription, lambda: self.last_id, lambda: pace_of(self.streams))
            self._audiences[key] = audience
            for topic in key.topics:
                self._by_topic.setdefault(topic, set()).add(audience)
        self._streams[stream] = self._audiences[key]
        self._streams[stream].streams.add(stream)

    def _leave(self, stream: Stream) -> None:
        audience = self._streams.pop(stream)
        audience.streams.discard(stream)
        if audience.streams:
            return
        audience.close()
        self._audiences.pop(audience.audience_key)
        for topic in audience.audience_key.topics:
            self._by_topic[topic].discard(audience)
            if not self._by_topic[topic]:
                del self._by_topic[topic]

    def _move(self, stream: Stream) -> None:
        """It hears something else from now on, and may have missed some of it."""
        self._leave(stream)
        self._join(stream)
        stream.send([EVERYTHING], self.last_id)

    def _catch_up(self, stream: Stream, last_event_id: str) -> None:
        number = self.number_of(last_event_id)
        if number is None or (self._past and number < self._past[0][0] - 1):
            stream.send([EVERYTHING], self.last_id)
            return
        missed = [change for at, change in self._past if at > number]
        topics = {
            topic for change in missed for topic in stream.subscription.matching_topics(change, topics_of(change))
        }
        if topics:
            stream.send(topics, self.last_id)

    async def _listen(self) -> None:
        missed = False
        while True:
            try:
                async with redis.asyncio.Redis.from_url(
                    settings.REDIS_URL, socket_connect_timeout=RETRY_S, health_check_interval=HEALTH_CHECK_S
                ) as client:
                    await self._listen_to(client, missed)
            except (RedisError, OSError, TimeoutError) as error:
                logger.warning("pages hear of no changes until Valkey is back: %s", error)
            self._is_subscribed, missed = False, True
            await asyncio.sleep(RETRY_S)

    async def _listen_to(self, client: Any, missed: bool) -> None:
        async with client.pubsub() as channel:
            await channel.subscribe(CHANNEL)
            # What was made before knows nothing of what was missed.
            self._last = next(self._numbers)
            if missed:
                for stream in self._streams:
                    stream.send([EVERYTHING], self.last_id)
            self._is_subscribed = True
            while True:
                message = await channel.get_message(ignore_subscribe_messages=True, timeout=HEALTH_CHECK_S)
                change = Change.decoded(message["data"]) if message else None
                if change is not None:
                    self.handle_change(change)


_hubs: dict[int, Hub] = {}  # by event loop: a process that serves has one


def hub() -> Hub:
    """That of the running event loop."""
    loop = asyncio.get_running_loop()
    if id(loop) not in _hubs:
        _hubs.clear()  # those of loops that are gone
        _hubs[id(loop)] = Hub()
        _close_at_signals(_hubs[id(loop)], loop)
    return _hubs[id(loop)]


def hub_of_process() -> Hub | None:
    """For threads, which have no loop: that of the loop that serves, once a page was open."""
    return next(iter(_hubs.values()), None)


def _close_at_signals(live_hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
    """A server that is told to end waits for open answers, and these would not end by themselves for minutes."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        previous = signal.getsignal(number)
        if callable(previous):
            signal.signal(number, _signal_handler(live_hub, loop, previous))


def _signal_handler(
    live_hub: Hub, loop: asyncio.AbstractEventLoop, previous: Callable[[int, types.FrameType | None], Any]
) -> Callable[[int, types.FrameType | None], None]:
    def handle(number: int, frame: types.FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(live_hub.close)
        previous(number, frame)

    return handle
