"""What is not settled yet: holes, what lies around them, and the folding that leaves nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.publishing import folding, offset_gaps
from controlplane.publishing.models import SettledRange
from controlplane.sources.models import Source
from tests.support.publishes import make_source, request, send, settled_offsets, start


@pytest.fixture
def source(db: None) -> Source:
    return make_source("flights")


def holes_of(source: Source, most: int = 100) -> list[offset_gaps.OffsetGap]:
    return offset_gaps.offset_gaps(source, timezone.now() + timedelta(seconds=1), most)


def test_a_fold_of_what_is_new_joins_it_with_what_is_old(source: Source) -> None:
    epoch = start(source)
    for low, high in ((0, 10), (20, 30), (40, 50), (50, 60)):
        send(request(epoch, {0: [(low, high)], 1: [(low, high)]}))
    SettledRange.objects.update(settled_at=timezone.now() - timedelta(hours=1))
    send(request(epoch, {0: [(10, 20)]}))
    assert folding.fold(since=timedelta(minutes=1)) == 2
    assert SettledRange.objects.count() == 2 + 1 + 4  # (40, 60) of partition 0 and all of 1 are left to the next
    assert settled_offsets(source) == {0: [(0, 30), (40, 60)], 1: [(0, 10), (20, 30), (40, 60)]}
    assert folding.fold(since=timedelta(minutes=1)) == 0
    assert folding.fold() == 2
    assert settled_offsets(source) == {0: [(0, 30), (40, 60)], 1: [(0, 10), (20, 30), (40, 60)]}


def test_holes_are_as_many_as_asked_for_and_as_old(source: Source) -> None:
    epoch = start(source)
    send(request(epoch, {0: [(10, 20), (25, 30), (35, 40)], 1: [(5, 6), (8, 9)]}))
    source.keys.update(log_start_offset=2)
    now = timezone.now() + timedelta(seconds=1)
    assert [(h.partition, h.start, h.end) for h in holes_of(source)] == [(0, 20, 25), (0, 30, 35), (1, 6, 8)]
    assert [(h.partition, h.start, h.end) for h in holes_of(source, 2)] == [(0, 20, 25), (0, 30, 35)]
    assert [(h.partition, h.start, h.end) for h in offset_gaps.leading_gaps(source, now)] == [(0, 2, 10), (1, 2, 5)]
    old = now - timedelta(hours=1)
    assert offset_gaps.offset_gaps(source, old, 100) == offset_gaps.leading_gaps(source, old) == []
    assert offset_gaps.extents(source) == {0: offset_gaps.Extent(10, 40), 1: offset_gaps.Extent(5, 9)}


WITHIN: dict[str, tuple[tuple[int, int], int, list[tuple[int, int]]]] = {
    "all": ((0, 50), 50 - 20, [(0, 10), (20, 25), (30, 35), (40, 50)]),
    "from a hole": ((22, 50), 28 - 10, [(22, 25), (30, 35), (40, 50)]),
    "from within": ((12, 37), 25 - 15, [(20, 25), (30, 35)]),
    "before all": ((0, 10), 10, [(0, 10)]),
    "to a hole": ((0, 23), 23 - 10, [(0, 10), (20, 23)]),
    "after all": ((45, 50), 5, [(45, 50)]),
    "nothing left": ((10, 20), 0, []),
    "nothing there": ((50, 50), 0, []),
    "a log made shorter": ((50, 40), 0, []),
}


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_unsettled_between_two_offsets(source: Source, name: str) -> None:
    send(request(start(source), {0: [(10, 20), (25, 30), (35, 40)]}))
    within, lag, ranges = WITHIN[name]
    found = offset_gaps.unsettled(source, {0: within}, 100)
    assert found == {0: offset_gaps.Unsettled(20, lag, ranges)}
    few = offset_gaps.unsettled(source, {0: within}, 1)[0]
    assert (few.lag, few.ranges) == (lag, ranges[:1])
    source.keys.update(partition=7)
    assert offset_gaps.unsettled(source, {0: (3, 9)}, 5) == {0: offset_gaps.Unsettled(0, 6, [(3, 9)])}
