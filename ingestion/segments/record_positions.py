"""Where records stand in their topic, told by ranges: they mostly come one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ingestion.specs import offsets as offset_ranges
from ingestion.specs.offsets import Range

Integers = npt.NDArray[np.integer[Any]]
_Int64s = npt.NDArray[np.int64]


class RecordPositions:
    """Numbers the records of batches from 0 on, and knows partition and offset of each: 24 bytes for every run."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[_Int64s] = []  # the number of each run's first record
        self._partition: list[_Int64s] = []
        self._offset: list[_Int64s] = []
        self.runs = 0

    def __len__(self) -> int:
        return self._count

    def add(self, partitions: Integers, offsets: Integers) -> int:
        """Take in a batch; returns the number of its first record, the others follow it."""
        base = self._count
        partitions, offsets = np.asarray(partitions, np.int64), np.asarray(offsets, np.int64)
        if len(offsets):
            breaks = (np.diff(offsets) != 1) | (np.diff(partitions) != 0)
            starts = np.append(0, np.flatnonzero(breaks) + 1)
            self._first.append(starts + base)
            self._partition.append(partitions[starts])
            self._offset.append(offsets[starts])
            self._count += len(offsets)
            self.runs += len(starts)
        return base

    def ranges(self, first: int, chosen: npt.NDArray[np.bool_]) -> dict[int, list[Range]]:
        """The half-open offset ranges of each partition that hold the records ``first + i`` with ``chosen[i]``."""
        starts, ends = _spans(chosen)
        numbers, lengths, run = self._split(starts + first, ends + first)
        partitions, offsets = self._joined(self._partition)[run], self._joined(self._offset)[run]
        offsets = offsets + numbers - self._joined(self._first)[run]
        return {
            int(p): offset_ranges.merged(_to_ranges(offsets[partitions == p], lengths[partitions == p]))
            for p in np.unique(partitions)
        }

    def _split(self, starts: _Int64s, ends: _Int64s) -> tuple[_Int64s, _Int64s, _Int64s]:
        """Spans of records cut where runs begin: number of the first, length, and which run it is."""
        firsts = self._joined(self._first)
        span = np.searchsorted(starts, firsts, side="right") - 1
        inside = firsts[(span >= 0) & (firsts < ends[span])] if len(starts) else firsts[:0]
        cuts = np.union1d(starts, inside)
        stops = np.minimum(np.append(cuts[1:], np.iinfo(np.int64).max), _span_end(cuts, starts, ends))
        return cuts, stops - cuts, np.searchsorted(firsts, cuts, side="right") - 1

    @staticmethod
    def _joined(parts: list[_Int64s]) -> _Int64s:
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0] if parts else np.empty(0, np.int64)


class RecordSet:
    """A set of record numbers, a byte for each of all that there are; emptied by taking its ranges."""

    def __init__(self, places: RecordPositions) -> None:
        self._places = places
        self._mask = np.zeros(len(places), np.bool_)
        self._min_place, self._max_place = len(places), 0

    def add(self, records: _Int64s) -> None:
        """Put these in."""
        self._mask[records] = True
        self._min_place, self._max_place = (
            min(self._min_place, int(records.min())),
            max(self._max_place, int(records.max()) + 1),
        )

    def ranges(self) -> dict[int, list[Range]]:
        """The offset ranges of each partition that are in the set; it is empty then."""
        chosen = self._mask[self._min_place : self._max_place]
        ranges = self._places.ranges(self._min_place, chosen)
        chosen[:] = False
        self._min_place, self._max_place = len(self._mask), 0
        return ranges


def _spans(chosen: npt.NDArray[np.bool_]) -> tuple[_Int64s, _Int64s]:
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    return edges[::2], edges[1::2]


def _span_end(cuts: _Int64s, starts: _Int64s, ends: _Int64s) -> _Int64s:
    return ends[np.searchsorted(starts, cuts, side="right") - 1]


def _to_ranges(offsets: _Int64s, lengths: _Int64s) -> Iterable[Range]:
    return zip(offsets.tolist(), (offsets + lengths).tolist(), strict=True)
