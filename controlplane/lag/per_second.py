"""What grows, a second: pure.

Rows gather, and are published many at once: over the seconds since the last look they would make a rate that never was.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

_MINUTE = timedelta(minutes=1)
_LEAST = timedelta(seconds=55)  # a minute, as looks fall, some seconds apart


def per_second(
    seen: Sequence[tuple[datetime, int]], longest_gap: timedelta, began: datetime | None = None
) -> list[float | None]:
    """At each look, by how much a sum has grown since the look about a minute before, over the time between them.

    ``seen``: when, and the sum, in the order of time. ``began``: when the sum was nothing, as if somebody had looked.
    None where nobody looked a minute before; but what was nothing then or later has all come since.
    """
    if began is not None and seen and began < seen[0][0]:
        return _rates([(began, 0), *seen], longest_gap)[1:]
    return _rates(seen, longest_gap)


def _rates(seen: Sequence[tuple[datetime, int]], longest_gap: timedelta) -> list[float | None]:
    rates: list[float | None] = []
    first = before = 0  # since which look there is no gap; the one a minute ago
    for n, (at, value) in enumerate(seen):
        if n and not timedelta() < at - seen[n - 1][0] <= longest_gap:
            first = before = n
        while _nearer(at - seen[min(before + 1, n)][0], at - seen[before][0]):
            before += 1
        rates.append(_rate(value - seen[before][1], at - seen[before][0], began=seen[first][1] == 0))
    return rates


def _nearer(age: timedelta, than: timedelta) -> bool:
    """Whether a look of this age is a better one to compare with."""
    return age >= _LEAST and abs(age - _MINUTE) < abs(than - _MINUTE)


def _rate(grown: int, over: timedelta, *, began: bool) -> float | None:
    if over < _LEAST:
        return max(0, grown) / _MINUTE.total_seconds() if began else None
    return max(0, grown) / over.total_seconds()
