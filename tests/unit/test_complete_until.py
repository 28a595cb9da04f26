"""Until when a source is complete, as a table: marks of looks, and what is settled when the next one comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from controlplane.publishing.completeness import CLOCK_MARGIN, Mark, Marks, max_marks, thin_marks

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def mark(seconds: float, **ends: int) -> Mark:
    """``p0=5``: partition 0 ended at 5."""
    return Mark(at(seconds), {int(name[1:]): end for name, end in ends.items()})


WAITING = Marks([mark(0, p0=5, p1=7), mark(5, p0=9, p1=7)])


@pytest.mark.parametrize(
    ("frontier", "until"),
    [
        ({0: 4, 1: 7}, None),
        ({0: 5, 1: 6}, None),
        ({0: 5, 1: 7}, 0),
        ({0: 8, 1: 100}, 0),
        ({0: 9, 1: 7}, 5),
        ({0: 12, 1: 6}, None),
        ({0: 12, 1: 8}, 10),  # all there is
        ({0: 12, 1: 8, 2: 0}, 10),  # a partition of which nothing was held when it was looked at
        ({1: 8}, 10),  # partition 0 is gone, and what it held
    ],
)
def test_it_is_complete_until_the_last_look_that_nothing_unsettled_lies_below(
    frontier: dict[int, int], until: float | None
) -> None:
    found, after = WAITING.advanced(mark(10, p0=12, p1=8), frontier, {})
    assert found == (None if until is None else at(until) - CLOCK_MARGIN)
    assert [m.at for m in after.waiting] == [at(s) for s in (0, 5, 10) if until is None or s > until]


def test_what_lies_behind_an_open_transaction_is_not_complete() -> None:
    """The log ends at 12; what may be read ends at 10, all of it settled."""
    assert Marks().advanced(mark(0, p0=12), {0: 10}, {})[0] is None


def test_a_partition_whose_reader_begins_nobody_knows_where_holds_back_what_came_since_it_was_seen() -> None:
    """Of a reader from the topic's end on nothing is settled: by its lag it would begin at the end each time."""
    first, marks = Marks().advanced(mark(0, p0=10), {0: 10}, unknown={0: 10})
    assert first == at(0) - CLOCK_MARGIN
    stored = Marks.read(marks.stored())
    second, marks = stored.advanced(mark(5, p0=12), {0: 12}, unknown={0: 12})
    assert second is None
    known, _ = marks.advanced(mark(10, p0=12), {0: 12}, unknown={})
    assert known == at(10) - CLOCK_MARGIN


def test_marks_that_are_too_close_are_not_kept() -> None:
    marks = Marks()
    for n in range(11):
        _, marks = marks.advanced(mark(n, p0=n + 1), {0: 0}, {})
    assert [m.at for m in marks.waiting] == [at(0), at(4), at(8)]


def test_a_long_wait_thins_the_marks_and_keeps_the_first_and_the_last() -> None:
    kept = thin_marks([mark(n, p0=n) for n in range(1000)], 10)
    assert (len(kept), kept[0].at, kept[-1].at) == (10, at(0), at(999))
    gaps = [(b.at - a.at).total_seconds() for a, b in pairwise(kept)]
    assert max(gaps) <= 4 * min(gaps)


def test_a_topic_of_many_partitions_keeps_fewer_marks() -> None:
    assert [max_marks(n) for n in (0, 1, 100, 200, 5000)] == [60, 60, 60, 30, 6]


def test_marks_are_stored_to_the_millisecond_and_never_later_than_they_were() -> None:
    one = Mark(at(0.0019), {0: 2**43})
    [read] = Marks.read(Marks([one], {3: 4}).stored()).waiting
    assert (read.at, read.end_offsets) == (at(0.001), one.end_offsets)
