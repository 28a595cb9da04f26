"""Which rows a batch task takes: those whose time is in a segment interval that ``intervals`` touch, as in Druid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.granularity import MAX_TIME, MIN_TIME
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.schema.periods import AnyGranularity

Integers = npt.NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class AcceptedTimes:
    """Spans of time that do not touch, in milliseconds; without intervals everything is taken."""

    def __init__(self, schema: DataSchema) -> None:
        granularity_spec = schema.granularitySpec
        spans = sorted(
            _whole_buckets(interval_ms(text), granularity_spec.segmentGranularity)
            for text in granularity_spec.intervals or []
        )
        self._all = not spans
        merged: list[tuple[int, int]] = []
        for start, end in spans:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self._starts = np.array([start for start, _ in merged], np.int64)
        self._ends = np.array([end for _, end in merged], np.int64)

    def holding(self, ms: Integers) -> npt.NDArray[np.bool_]:
        """Which of these times are taken."""
        if self._all:
            return np.ones(len(ms), np.bool_)
        place = np.searchsorted(self._starts, ms, side="right") - 1
        return (place >= 0) & (ms < self._ends[place])


def _whole_buckets(interval: tuple[int, int], granularity: AnyGranularity) -> tuple[int, int]:
    """From the start of the first segment interval that it touches to the end of the last."""
    start, end = interval
    low, high = (_EPOCH + ms * _MILLISECOND for ms in (start, max(start, end - 1)))
    first, last = (granularity.bucket(min(max(t, MIN_TIME), MAX_TIME)) for t in (low, high))
    return (first[0] - _EPOCH) // _MILLISECOND, (last[1] - _EPOCH) // _MILLISECOND
