"""When what has gathered is handed off, unless the spec says when: the sooner the less there is still to read.

Whoever has read all there is waits for nothing but the last handoff to be a little while ago; how long, grows with what
comes and with how many segments a handoff makes. Whoever is behind hands off early once, so that there are rows to be
seen, then less and less often: large segments are worth more then than fresh ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

CALM_S = 2.0  # between two handoffs of an indexer that has read all there is
CALM_RATE = 2_500.0  # records a second up to which it is so; from there on it grows with the root of the rate
BEHIND_S = (1.0, 4.0, 16.0)  # ages of what has gathered, while there is more to read: the first handoff, the second …
LONGEST_S = 30.0
SEGMENTS_PER_S = 5.0
QUIET_S = 0.05  # nothing came for so long: less than a poll, and more than what is done between two
NOT_SMALL = 50_000  # records


@dataclass(frozen=True)
class Backlog:
    """What has gathered."""

    records: int
    age_s: float
    quiet_s: float  # since the last of it was read
    waiting: int | None  # records that are known to wait in the topic; None while that is not known

    @property
    def all_read(self) -> bool:
        return self.waiting == 0

    @property
    def idle(self) -> bool:
        """All is read, and nothing more comes just now."""
        return self.all_read and self.quiet_s >= QUIET_S


class Pace:
    """Remembers the last handoff."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._handed_off_at = -math.inf
        self._segments = 0
        self._early_handoffs = 0  # handoffs since all was read

    def due(self, backlog: Backlog) -> bool:
        """Whether to hand off now."""
        since_s = self._clock() - self._handed_off_at
        if backlog.all_read:
            self._early_handoffs = 0
        if backlog.idle:
            return since_s >= self._with_minimum(CALM_S) or backlog.records >= NOT_SMALL
        if backlog.all_read:
            return since_s >= self._with_minimum(_calm_s(backlog.records / max(since_s, backlog.age_s, QUIET_S)))
        return backlog.age_s >= self._with_minimum(
            BEHIND_S[self._early_handoffs] if self._early_handoffs < len(BEHIND_S) else LONGEST_S
        )

    def note_handoff(self, segments: int = 0) -> None:
        """It was done, by this indexer with so many segments, or by another replica for all."""
        self._handed_off_at = self._clock()
        self._segments = segments or self._segments
        self._early_handoffs += 1

    def _with_minimum(self, seconds: float) -> float:
        return max(seconds, min(LONGEST_S, self._segments / SEGMENTS_PER_S))


def _calm_s(rate: float) -> float:
    return min(LONGEST_S, CALM_S * max(1.0, math.sqrt(rate / CALM_RATE)))
