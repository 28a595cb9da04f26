"""A few places for work that takes a processor, dealt out so that one user can't keep the others waiting."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


class NoPlace(Exception):
    """There was none in time, or this user has too many waiting already."""


Groups = Mapping[Hashable, int]  # each with the number of places that it holds at most


@dataclass(frozen=True, eq=False)
class _Waiting:
    user: Hashable
    number: int
    groups: Groups
    not_before: float = 0.0  # by the monotonic clock


class Place:
    """One that a user holds."""

    def __init__(self, places: FairPlaces, user: Hashable) -> None:
        self._places, self._user = places, user
        self._groups: Groups = {}
        self._is_held = True

    def join(self, groups: Groups, within_s: float) -> None:
        """Hold it for these groups, too. Raises ``NoPlace``.

        Where a group has no room, the place goes to others until there is: who waits for one group keeps nobody of
        another one waiting.
        """
        all_groups = {**self._groups, **groups}
        if not self._places.enter(groups):
            self.release()
            self._places.acquire(self._user, within_s, all_groups)
            self._is_held = True
        self._groups = all_groups

    def stand_back(self, pause_s: float, within_s: float) -> None:
        """Others go first for a while. Raises ``NoPlace``."""
        self.release()
        self._places.acquire(self._user, within_s, self._groups, pause_s)
        self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._places.release(self._user, self._groups)


class FairPlaces:
    """``places`` of one process. A user holds ``per_user`` of them at most, and waits for ``waiting`` at most.

    The last free place is for a user who holds none: what two users do for long keeps nobody else out.
    A free place goes to the user who holds the fewest, of these to the one who had one the longest ago.
    """

    def __init__(self, places: int, per_user: int, waiting: int) -> None:
        self._places, self._per_user, self._max_waiting = places, per_user, waiting
        self._changed = threading.Condition()
        self._held: Counter[Hashable] = Counter()
        self._held_by_group: Counter[Hashable] = Counter()
        self._queue: list[_Waiting] = []
        self._last_served: dict[Hashable, int] = {}  # when each of them had a place last, while anybody waits
        self._clock = 0

    @contextmanager
    def place(self, user: Hashable, within_s: float) -> Iterator[Place]:
        """Hold a place. Raises ``NoPlace``."""
        self.acquire(user, within_s, {})
        place = Place(self, user)
        try:
            yield place
        finally:
            place.release()

    def enter(self, groups: Groups) -> bool:
        """Whether there was room in all of them at once."""
        with self._changed:
            has_room = self._has_room(groups)
            if has_room:
                self._held_by_group.update(groups.keys())
            return has_room

    def _has_room(self, groups: Groups) -> bool:
        return all(self._held_by_group[group] < most for group, most in groups.items())

    def acquire(self, user: Hashable, within_s: float, groups: Groups, pause_s: float = 0.0) -> None:
        """Wait for a place, ``pause_s`` at least. Raises ``NoPlace``."""
        deadline = time.monotonic() + within_s
        with self._changed:
            if sum(w.user == user for w in self._queue) >= self._max_waiting:
                raise NoPlace
            mine = _Waiting(user, self._tick(), groups, time.monotonic() + pause_s)
            self._queue.append(mine)
            try:
                while self._next_waiting() is not mine:
                    now = time.monotonic()
                    if now >= deadline:
                        raise NoPlace
                    self._changed.wait((deadline if mine.not_before <= now else min(deadline, mine.not_before)) - now)
                self._held[user] += 1
                self._held_by_group.update(groups.keys())
                self._last_served[user] = self._tick()
            finally:
                self._queue.remove(mine)
                if not self._queue:
                    self._last_served.clear()
                self._changed.notify_all()

    def release(self, user: Hashable, groups: Groups) -> None:
        """Give it back."""
        with self._changed:
            self._held_by_group.subtract(groups.keys())
            self._held_by_group += Counter()
            self._held[user] -= 1
            self._held += Counter()  # drops who holds none
            self._changed.notify_all()

    def _next_waiting(self) -> _Waiting | None:
        """Whose turn it is; None while nobody's."""
        free = self._places - self._held.total()
        if free <= 0:
            return None
        most = self._per_user if free > 1 else 1
        ready = [w for w in self._queue if w.not_before <= time.monotonic()]
        eligible = [w for w in ready if self._held[w.user] < most and self._has_room(w.groups)]
        return min(eligible, key=self._rank, default=None)

    def _rank(self, waiting: _Waiting) -> tuple[int, int, int]:
        return self._held[waiting.user], self._last_served.get(waiting.user, 0), waiting.number

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
