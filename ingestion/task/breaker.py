"""The circuit breaker: while the control plane, the deep storage or a schema registry refuses, nothing is polled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from ingestion.client import Unreachable
from ingestion.decode import RegistryUnreachable
from ingestion.segments import DeepStorageError
from ingestion.sources import Source
from ingestion.task.control import Control
from ingestion.task.errors import Lapsed

RETRY_S = (0.1, 0.2, 0.5, 1.0)
STORE_WAIT_S = 5.0
Answer = TypeVar("Answer")


class Breaker:
    """Opens at the first refusal, closes when what was refused is done or the store was seen to commit."""

    def __init__(self, control: Control, source: Source, log: Any) -> None:
        self._control = control
        self._source = source
        self._log = log
        self._opened_at: float | None = None

    def insist(self, ask: Callable[[], Answer], give_up: float) -> Answer:
        """Ask until there is an answer, the same each time. ``give_up``: ``time.monotonic``; raises ``Lapsed`` then."""
        attempt = 0
        while True:
            try:
                answer = ask()
            except (Unreachable, DeepStorageError, RegistryUnreachable) as error:
                self._open(error)
                attempt = self._wait(attempt, give_up)
            else:
                self.mend()
                return answer

    def wait_until_mended(self) -> None:
        """After a batch was given up: poll again only once a heartbeat has shown that the store commits."""
        since = self._opened_at or time.monotonic()
        while self._control.directive == "continue" and not self._control.wait_for_store(since, STORE_WAIT_S):
            pass
        self.mend()

    def _open(self, error: Exception) -> None:
        reason = f"{_who(error)}: {error}"
        self._source.pause()
        self._control.show(state="paused", message=reason)
        if self._opened_at is None:
            self._log.warning("paused", reason=reason)
        self._opened_at = time.monotonic()

    def mend(self) -> None:
        """Poll again: what was refused is done."""
        if self._opened_at is not None:
            self._opened_at = None
            self._control.show(state="reading", message="")
            self._source.resume()
            self._log.info("goes on")

    def _wait(self, attempt: int, give_up: float) -> int:
        wait = RETRY_S[min(attempt, len(RETRY_S) - 1)]
        if time.monotonic() + wait > give_up:
            raise Lapsed
        time.sleep(wait)
        return attempt + 1


def _who(error: Exception) -> str:
    if isinstance(error, DeepStorageError):
        return "The deep storage refuses"
    if isinstance(error, RegistryUnreachable):
        return "The schema registry can't be asked"
    return "The control plane does not answer"
