"""SIGTERM: whoever runs the stack or the machine stops it. The application ends in order, within a bound."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # all that an application imports before Spark starts makes its start longer
    from ingestion.specs.messages.protocol import Directive

STOP_TIMEOUT_S = 25.0
# Of the bound: until then what is held is published, then it is released, then the application ends as it is.
FINISH, RELEASE = 0.6, 0.8


class Ending:
    """Whether the process was told to end by a signal, and what its indexers are to do since. Of the main thread."""

    def __init__(self, bound_s: float = STOP_TIMEOUT_S) -> None:
        self._timeout_s = bound_s
        self._requested_at: float | None = None

    @classmethod
    def from_environment(cls) -> Ending:
        """Its bound is what the control plane waits before it kills."""
        return cls(float(os.environ.get("HEADGATE_STOP_TIMEOUT") or STOP_TIMEOUT_S))

    def install(self) -> Ending:
        """From now on SIGTERM asks for the end; what came to another one counts. Called in the main thread."""
        earlier = getattr(signal.signal(signal.SIGTERM, self._on_signal), "__self__", None)
        if isinstance(earlier, Ending) and earlier.is_requested:
            self.request()
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.request()

    def request(self) -> None:
        """Ask for the end; asked again, it changes nothing."""
        if self._requested_at is None:
            self._requested_at = time.monotonic()

    @property
    def is_requested(self) -> bool:
        return self._requested_at is not None

    @property
    def directive(self) -> Directive:
        """What the indexers are to do, if the control plane wants nothing stricter."""
        if not self.is_requested:
            return "continue"
        return "finish" if self._share < FINISH else "stop"

    @property
    def overdue(self) -> bool:
        """Whether there is no time left to wait for indexers."""
        return self.is_requested and self._share >= RELEASE

    @property
    def is_time_up(self) -> bool:
        """Whether there is no time left at all."""
        return self.is_requested and self._share >= 1.0

    @property
    def _share(self) -> float:
        return (time.monotonic() - (self._requested_at or 0.0)) / self._timeout_s
