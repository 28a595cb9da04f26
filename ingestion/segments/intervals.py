"""Which segment interval rows fall into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from ingestion.specs.schema.periods import AnyGranularity

Interval = tuple[datetime, datetime]
_Int64s = npt.NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def split_by_interval(ms: _Int64s, granularity: AnyGranularity) -> Iterator[tuple[Interval, slice]]:
    """Each interval with the slice of its rows, ``ms`` ascending: one search for each interval, not each row."""
    start = 0
    while start < len(ms):
        interval = granularity.bucket(to_datetime(ms[start]))
        end = int(np.searchsorted(ms, (interval[1] - _EPOCH) // _MILLISECOND))
        yield interval, slice(start, end)
        start = end


def count_by_interval(ms: _Int64s, granularity: AnyGranularity) -> tuple[Counter[Interval], int]:
    """How many rows each interval has, and how often two rows in a row have different ones; ``ms`` in any order."""
    if not len(ms):
        return Counter(), 0
    interval = granularity.bucket(to_datetime(ms.min()))
    if to_datetime(ms.max()) < interval[1]:
        return Counter({interval: len(ms)}), 0
    parts = list(split_by_interval(np.sort(ms), granularity))
    starts = [(interval[0] - _EPOCH) // _MILLISECOND for interval, _ in parts]
    changes = np.count_nonzero(np.diff(np.searchsorted(np.array(starts), ms, side="right")))
    return Counter({interval: part.stop - part.start for interval, part in parts}), int(changes)


def to_datetime(ms: np.int64) -> datetime:
    return _EPOCH + timedelta(milliseconds=int(ms))
