"""Those who hear the same are told together, not too often."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from controlplane.common.changes import Change
from frontend.live.topics import Subscription

if TYPE_CHECKING:
    from frontend.live.stream import Stream

MIN_PACE_S = 1.0
MAX_PACE_S = 60.0
PAGES_A_SECOND = 3.0  # that all open pages together may ask for what goes on changing by itself
MAX_SPREAD_S = 5.0  # within which the pages of one audience ask, so that no request waits for all of them


def pace_of(streams: int) -> float:
    """Seconds between two events that nobody waits for: the more pages are open, the longer."""
    return min(MAX_PACE_S, max(MIN_PACE_S, streams / PAGES_A_SECOND))


def urgent_pace_of(pace_s: float) -> float:
    """Seconds between two events of which the later one is urgent: none while few pages are open."""
    return (pace_s - MIN_PACE_S) / 3


class Audience:
    """The streams of pages with the same topics, of people with the same teams.

    All are told with one number, so that a part that many of them show is made once: see ``shared_parts``.
    """

    def __init__(self, subscription: Subscription, last_id: Callable[[], str], pace: Callable[[], float]) -> None:
        self.streams: set[Stream] = set()
        self.audience_key = subscription.audience_key
        self._subscription = subscription
        self._last_id = last_id
        self._pace = pace
        self._pending: dict[str, None] = {}
        self._clock = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._urgent_from = self._clock.time()
        # Not all begin at once: pages that are opened together do not ask together for ever.
        self._paced_from = self._clock.time() - random.uniform(0, 1) * pace()  # noqa: S311 - a jitter

    def add_change(self, change: Change, about: Sequence[str]) -> None:
        """Keep what concerns them until the bell rings; ``about``: the change's topics, which the hub knows."""
        topics = self._subscription.matching_topics(change, about)
        if not topics:
            return
        self._pending |= dict.fromkeys(topics)
        at = self._urgent_from if change.urgent else self._paced_from + self._pace()
        if self._timer is None or at < self._timer.when():
            self.close()
            self._timer = self._clock.call_at(at, self._send_pending)

    def close(self) -> None:
        """The bell rings no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send_pending(self) -> None:
        pace, now = self._pace(), self._clock.time()
        topics, self._pending, self._timer = sorted(self._pending), {}, None
        self._paced_from, self._urgent_from = now, now + urgent_pace_of(pace)
        spread = min(MAX_SPREAD_S, urgent_pace_of(pace)) if len(self.streams) > 1 else 0.0
        for stream in self.streams:
            stream.send(topics, self._last_id(), within_s=spread)
