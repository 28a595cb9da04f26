"""The circuit breaker: while the control plane, deep storage or a schema registry refuses, nothing is polled.

Here alone is tried again what was refused; clients and storages ask once. What may pass is waited for. What needs a
person (access, a bucket that is not there), or has not passed for ``PATIENCE_S``, ends the task; so does a
registry that does not take the spec's login for ``DENIED_S``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from ingestion.client.errors import Invalid, PublishRefused, Unreachable
from ingestion.decode.errors import RegistryUnreachable
from ingestion.segments.errors import DeepStorageError
from ingestion.sources.base import Source
from ingestion.task.control import Control
from ingestion.task.errors import DeadlineExceeded, RegistryRefused, StorageRefused

RETRY_S = (0.1, 0.2, 0.5, 1.0)
STORE_WAIT_S = 5.0
PATIENCE_S = 600.0
DENIED_S = 60.0  # a login may be on its way to the registry, or from there to its replicas
Answer = TypeVar("Answer")


class Breaker:
    """Opens at the first refusal, closes when what was refused is done or the store was seen to commit."""

    def __init__(self, control: Control, source: Source, log: Any, patience_s: float = PATIENCE_S) -> None:
        self._control = control
        self._source = source
        self._log = log
        self._timeout_s = patience_s
        self._opened_at: float | None = None
        self._refused_since: float | None = None
        self._denied_since: float | None = None
        self._refused: Callable[[], Any] | None = None  # by the deep storage or the schema registry

    def retry_until_answered(self, ask: Callable[[], Answer], give_up: float) -> Answer:
        """Ask until there is an answer, the same each time. ``give_up``: ``time.monotonic``; raises
        ``DeadlineExceeded`` then, or when told to stop.

        Raises ``PermanentRefusal`` when it is the storage or the registry that refuses and waiting does not help;
        ``PublishRefused`` and ``Invalid`` as they are.
        """
        attempt = 0
        while True:
            try:
                answer = ask()
            except Unreachable as error:
                self._open(error)
            except RegistryUnreachable as error:
                self._note_unanswered(ask, error)
            except (PublishRefused, Invalid):
                self.mend()  # a refusal is an answer: whoever gave it is back
                raise
            except DeepStorageError as error:
                self._note_refused(ask, error)
            else:
                self.mend()
                return answer
            attempt = self._wait(attempt, give_up)

    def wait_until_closed(self) -> None:
        """After a batch was given up: poll again only once a heartbeat has shown that the store commits.

        If it was for the deep storage or the schema registry, only once that has taken or answered what it refused:
        polling sooner would use up the records' deliveries. What the storage takes then is an orphan, and cleaned up
        as one. Raises ``PermanentRefusal``.
        """
        self._wait_for_refused()
        since = self._opened_at or time.monotonic()
        while self._control.directive == "continue" and not self._control.wait_for_store(since, STORE_WAIT_S):
            pass
        self.mend()

    def _wait_for_refused(self) -> None:
        while self._refused is not None and self._control.directive == "continue":
            self._control.pause(STORE_WAIT_S)
            try:
                self._refused()
                return
            except RegistryUnreachable as error:
                self._note_unanswered(self._refused, error)
            except DeepStorageError as error:
                self._note_refused(self._refused, error)

    def _note_unanswered(self, ask: Callable[[], Any], error: RegistryUnreachable) -> None:
        self._open(error)
        self._refused = ask
        if not error.permanent:
            self._denied_since = None
            return
        self._denied_since = self._denied_since or time.monotonic()
        if time.monotonic() - self._denied_since >= DENIED_S:
            message = f"The schema registry has refused for {DENIED_S:g} s: {error}. Correct the login in the spec"
            raise RegistryRefused(message) from error

    def _note_refused(self, write: Callable[[], Any], error: DeepStorageError) -> None:
        self._open(error)
        self._refused = write
        self._refused_since = self._refused_since or time.monotonic()
        if error.permanent:
            raise StorageRefused(f"The deep storage refuses: {error}") from error
        if time.monotonic() - self._refused_since >= self._timeout_s:
            message = f"The deep storage has refused for {self._timeout_s:g} s: {error}"
            raise StorageRefused(message) from error

    def _open(self, error: Exception) -> None:
        reason = f"{_refusing_service(error)}: {error}"
        self._source.pause()
        self._control.show(state="paused", message=reason)
        if self._opened_at is None:
            self._log.warning("paused", reason=reason)
        self._opened_at = time.monotonic()

    def mend(self) -> None:
        """Poll again: what was refused is done."""
        self._refused = self._refused_since = self._denied_since = None
        if self._opened_at is not None:
            self._opened_at = None
            self._control.show(state="reading", message="")
            self._source.resume()
            self._log.info("goes on")

    def _wait(self, attempt: int, give_up: float) -> int:
        wait = RETRY_S[min(attempt, len(RETRY_S) - 1)]
        if time.monotonic() + wait > give_up or self._control.directive == "stop":
            raise DeadlineExceeded
        time.sleep(wait)
        return attempt + 1


def _refusing_service(error: Exception) -> str:
    if isinstance(error, DeepStorageError):
        return "The deep storage refuses"
    if isinstance(error, RegistryUnreachable):
        return "The schema registry gives no schema"
    return "The control plane does not answer"
