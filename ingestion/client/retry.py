"""For who has nothing else to do than to wait for the control plane."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ingestion.client.errors import Unreachable

Answer = TypeVar("Answer")
_PAUSE_S = 1.0


def until_answered(
    ask: Callable[[], Answer], longest_s: float, tell: Callable[[str], object] = lambda _: None
) -> Answer:
    """Without an answer nothing is known: the same is asked again. Raises ``Unreachable`` after ``longest_s``.

    ``tell``: is told each time why there was none.
    """
    end = time.monotonic() + longest_s
    while True:
        try:
            return ask()
        except Unreachable as error:
            tell(str(error))
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_S)
