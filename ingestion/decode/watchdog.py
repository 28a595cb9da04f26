"""A deadline for what DuckDB computes: counted in processor time, so that a busy machine convicts no record.

One thread looks a few times a second whether the decoder's thread has computed for too long since it began, and then
interrupts DuckDB, again and again until the computation ends. To begin and to end costs a microsecond.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CHECK_EVERY_S = 0.1
HUNG = 71  # the exit code of a process that ended itself


class Watchdog:
    """Watches one thread at a time. ``interrupt`` is called from another one, which ends with this.

    ``hang_s``: where interrupting does not help, after so much processor time the process ends at once, with exit code
    ``HUNG``: it is of no use any more, and who started it starts another one. None: it is left to others.
    """

    def __init__(self, interrupt: Callable[[], None], hang_s: float | None = None) -> None:
        self._interrupt = interrupt
        self._hang_s = hang_s
        self._lock = threading.Lock()
        self._clock: int | None = None  # of the thread that computes; None: nothing is watched
        self._deadline = self._hung_at = 0.0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        """Interrupt what this thread computes in here once it has taken ``seconds`` of processor time."""
        self._start()
        clock = _clock_of_this_thread()
        now = time.clock_gettime(clock)
        with self._lock:
            self._clock, self._deadline = clock, now + seconds
            self._hung_at = now + (self._hang_s or float("inf"))
        try:
            yield
        finally:
            with self._lock:
                self._clock = None

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            arguments = weakref.ref(self), self._closed
            self._thread = threading.Thread(target=_watch, args=arguments, name="decoder-watchdog", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Interrupt what is watched, if it has taken too long."""
        with self._lock:  # held while it interrupts: what begins afterwards is not hit
            if self._clock is None:
                return
            now = time.clock_gettime(self._clock)
            if now > self._hung_at:
                os._exit(HUNG)
            if now > self._deadline:
                self._interrupt()


def _watch(watchdog: weakref.ref[Watchdog], closed: threading.Event) -> None:
    """Whoever forgets to close a watchdog leaves no thread behind, which would look for ever."""
    while not closed.wait(_CHECK_EVERY_S):
        living = watchdog()
        if living is None:
            return
        living.check()
        del living


def _clock_of_this_thread() -> int:
    """Its processor time; where the system has no such clock, the time that passes."""
    if hasattr(time, "pthread_getcpuclockid"):
        return time.pthread_getcpuclockid(threading.get_ident())
    return time.CLOCK_MONOTONIC
