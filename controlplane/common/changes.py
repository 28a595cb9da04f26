"""Tell open pages that something has changed: a small message on a channel of Valkey, after the commit.

It says what changed, never how: a page that shows it asks again, as who may see it. Nobody depends on it: without
Valkey nothing is told, and pages ask from time to time by themselves.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

import redis
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

logger = logging.getLogger(__name__)
CHANNEL = "headgate:changes"
TIMEOUT_S = 0.25
MIN_INTERVAL_S = 1.0
MAX_REMEMBERED = 10_000
QUIET_S = 10.0  # after a failure nothing is told for so long: nothing that is published has to wait for Valkey


@dataclass(frozen=True)
class Change:
    """What changed, by the names that pages know."""

    team: int = 0  # whose it is
    datasource: str = ""
    supervisor: str = ""
    task: str = ""
    user: int = 0  # somebody's teams or rights
    urgent: bool = False  # a person did it, or a state changed

    def encoded(self) -> str:
        """Without what is empty."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})

    @classmethod
    def decoded(cls, text: str | bytes) -> Change | None:
        """None for what is no such message."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


def notify_pages(change: Change) -> None:
    """At the end of the transaction, if there is one."""
    transaction.on_commit(lambda: _notifier.notify(change), robust=True)


class _Notifier:
    """One connection pool a process; redis-py makes it anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Any = None
        self._paused_until = 0.0
        self._sent_at: dict[Change, float] = {}

    def notify(self, change: Change) -> None:
        now = time.monotonic()
        if now < self._paused_until or not (change.urgent or self._is_time(change, now)):
            return
        try:
            self._connected().publish(CHANNEL, change.encoded())
        except (redis.RedisError, OSError) as error:
            self._paused_until = time.monotonic() + QUIET_S
            logger.warning("changes are not told to pages for %.0f s: %s", QUIET_S, error)

    def _is_time(self, change: Change, now: float) -> bool:
        """Of what goes on and on, once a second is enough."""
        if now - self._sent_at.get(change, -MIN_INTERVAL_S) < MIN_INTERVAL_S:
            return False
        if len(self._sent_at) >= MAX_REMEMBERED:
            self._sent_at.clear()
        self._sent_at[change] = now
        return True

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = redis.Redis.from_url(
                    settings.REDIS_URL,
                    socket_timeout=TIMEOUT_S,
                    socket_connect_timeout=TIMEOUT_S,
                    retry=Retry(NoBackoff(), 0),
                )
            return self._client


_notifier = _Notifier()
