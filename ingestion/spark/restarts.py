"""How often an indexer that fails is started again: later and later, and when one reason stays, not for ever."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
_NUMBERS = re.compile(r"\d+")  # of processes, ports, attempts: they make no other reason of it


@dataclass
class Restarts:
    """One indexer's failures."""

    most: int  # in a row for one reason, and nothing published in between; then it is over
    waits: int = 0  # failures in a row, for whatever reason
    in_a_row: int = 0  # for this reason
    _reason: str = field(default="", repr=False)

    def failed(self, reason: str, published: bool, ran_long: bool) -> None:
        """It failed. ``published``: something since its start. ``ran_long``: whatever it was, it was no bad start."""
        same = _NUMBERS.sub("#", reason)
        self.waits = 1 if published or ran_long else self.waits + 1
        self.in_a_row = 1 if published or same != self._reason else self.in_a_row + 1
        self._reason = same

    @property
    def are_over(self) -> bool:
        return self.in_a_row >= self.most

    @property
    def wait_s(self) -> float:
        """How long to wait before it is started again."""
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self.waits - 1, 20))
