"""A few places for work that takes a processor, dealt out so that one user can't keep the others waiting."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class NoPlace(Exception):
    """There was none in time, or this user has too many waiting already."""


@dataclass(frozen=True, eq=False)
class _Waiting:
    user: Hashable
    number: int


class FairPlaces:
    """``places`` of one process. A user holds ``per_user`` of them at most, and waits for ``waiting`` at most.

    The last free place is for a user who holds none: what two users do for long keeps nobody else out.
    A free place goes to the user who holds the fewest, of these to the one who had one the longest ago.
    """

    def __init__(self, places: int, per_user: int, waiting: int) -> None:
        self._places, self._per_user, self._max_waiting = places, per_user, waiting
        self._changed = threading.Condition()
        self._held: Counter[Hashable] = Counter()
        self._queue: list[_Waiting] = []
        self._last_served: dict[Hashable, int] = {}  # when each of them had a place last, while anybody waits
        self._clock = 0

    @contextmanager
    def place(self, user: Hashable, within_s: float) -> Iterator[None]:
        """Hold a place. Raises ``NoPlace``."""
        self._acquire(user, within_s)
        try:
            yield
        finally:
            self._release(user)

    def _acquire(self, user: Hashable, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        with self._changed:
            if sum(w.user == user for w in self._queue) >= self._max_waiting:
                raise NoPlace
            mine = _Waiting(user, self._tick())
            self._queue.append(mine)
            try:
                while self._next_waiting() is not mine:
                    if not self._changed.wait(deadline - time.monotonic()):
                        raise NoPlace
                self._held[user] += 1
                self._last_served[user] = self._tick()
            finally:
                self._queue.remove(mine)
                if not self._queue:
                    self._last_served.clear()
                self._changed.notify_all()

    def _release(self, user: Hashable) -> None:
        with self._changed:
            self._held[user] -= 1
            self._held += Counter()  # drops who holds none
            self._changed.notify_all()

    def _next_waiting(self) -> _Waiting | None:
        """Whose turn it is; None while nobody's."""
        free = self._places - self._held.total()
        if free <= 0:
            return None
        eligible = [w for w in self._queue if self._held[w.user] < (self._per_user if free > 1 else 1)]
        return min(eligible, key=self._rank, default=None)

    def _rank(self, waiting: _Waiting) -> tuple[int, int, int]:
        return self._held[waiting.user], self._last_served.get(waiting.user, 0), waiting.number

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
