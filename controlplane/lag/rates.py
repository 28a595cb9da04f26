"""What grows, a second: pure.

Rows gather, and are published many at once: over the seconds since the last look they would make a rate that never was.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

_MINUTE = timedelta(minutes=1)
_MIN_SPAN = timedelta(seconds=55)  # a minute, as looks fall, some seconds apart


def per_second(
    samples: Sequence[tuple[datetime, int]], longest_gap: timedelta, began: datetime | None = None
) -> list[float | None]:
    """At each look, by how much a sum has grown since the look about a minute before, over the time between them.

    ``samples``: when, and the sum, in the order of time. ``began``: when the sum was nothing, as if somebody looked.
    None where nobody looked a minute before; but what was nothing then or later has all come since.
    """
    if began is not None and samples and began < samples[0][0]:
        return _rates([(began, 0), *samples], longest_gap)[1:]
    return _rates(samples, longest_gap)


def _rates(samples: Sequence[tuple[datetime, int]], longest_gap: timedelta) -> list[float | None]:
    rates: list[float | None] = []
    run_start = baseline = 0  # since which look there is no gap; the one a minute ago
    for n, (at, value) in enumerate(samples):
        if n and not timedelta() < at - samples[n - 1][0] <= longest_gap:
            run_start = baseline = n
        while _is_better_baseline(at - samples[min(baseline + 1, n)][0], at - samples[baseline][0]):
            baseline += 1
        rates.append(_rate(value - samples[baseline][1], at - samples[baseline][0], began=samples[run_start][1] == 0))
    return rates


def _is_better_baseline(age: timedelta, than: timedelta) -> bool:
    """Whether a look of this age is a better one to compare with."""
    return age >= _MIN_SPAN and abs(age - _MINUTE) < abs(than - _MINUTE)


def _rate(grown: int, over: timedelta, *, began: bool) -> float | None:
    if over < _MIN_SPAN:
        return max(0, grown) / _MINUTE.total_seconds() if began else None
    return max(0, grown) / over.total_seconds()
