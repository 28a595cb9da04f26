"""Planning through intervals: the segments of a time range, whatever the lengths of intervals, and what a change is."""

from __future__ import annotations

import random
import uuid
from datetime import datetime, timedelta

import pytest

from controlplane.common.errors import InvalidInput
from controlplane.segments.models import Interval, Segment, SegmentSchema
from controlplane.segments.selectors.lists import count_segments, list_segments
from controlplane.segments.selectors.planning import intervals_within, live_segments
from controlplane.sources.models import Source
from tests.support.django_cast import sum_intervals
from tests.support.publishes import DAY, make_source, request, segment, send, start

HOUR = timedelta(hours=1)


@pytest.fixture
def source(db: None) -> Source:
    return make_source("flights")


def store(source: Source, begins: datetime, length: timedelta, number: int, used: bool = True) -> None:
    Segment.objects.create(
        datasource=source.datasource,
        interval_start=begins,
        interval_end=begins + length,
        version="v",
        partition_num=number,
        rows=1,
        size_bytes=1,
        sha256="0" * 64,
        path=f"flights/{uuid.uuid4()}.parquet",
        min_time=begins,
        max_time=begins,
        schema=SegmentSchema.of(source.datasource, []),
        task_id="",
        used=used,
        created_at=DAY,
    )


def test_a_plan_has_what_overlaps_and_nothing_else(source: Source) -> None:
    """Hours, days, a month and all time among each other, some of them without a segment in use."""
    of, other = random.Random(17), make_source("others", topic_id="topic-id-2")
    for _ in range(120):
        length = of.choice([HOUR, HOUR, timedelta(days=1), timedelta(days=30)])
        begins = DAY + of.randrange(40) * max(length, timedelta(days=1)) // 4
        for number in range(of.choice([1, 1, 3])):
            store(of.choice([source, source, other]), begins, length, of.randrange(10**6) + number, of.random() < 0.8)
    store(source, datetime(1, 1, 1, tzinfo=DAY.tzinfo), timedelta(days=3_000_000), 0)
    sum_intervals(source.datasource)
    sum_intervals(other.datasource)
    live = list(Segment.objects.filter(datasource=source.datasource, used=True))
    for _ in range(60):
        low = of.choice([None, DAY + of.randrange(-50, 400) * HOUR * 6])
        high = of.choice([None, DAY + of.randrange(-50, 400) * HOUR * 6])
        wanted = {
            s.pk
            for s in live
            if (low is None or s.interval_end > low) and (high is None or s.interval_start < high)
            if low is None or high is None or low < high
        }
        assert {s.pk for s in live_segments(source.datasource, low, high)} == wanted
        listed = list_segments(source.datasource, interval_start=low, interval_end=high)
        assert [s.pk for s in listed] == [s.pk for s in sorted(listed, key=_newest_first)]
        assert count_segments(source.datasource, interval_start=low, interval_end=high) == len(wanted)
        spans = {(i.start, i.end) for i in intervals_within(source.datasource, low, high)}
        assert spans == {(s.interval_start, s.interval_end) for s in live if s.pk in wanted}


def _newest_first(segment: Segment) -> tuple[timedelta, int, int]:
    return DAY - segment.interval_start, -segment.partition_num, -segment.pk.int


def test_each_publish_into_an_interval_is_a_revision_of_it(source: Source) -> None:
    epoch = start(source)
    send(request(epoch, segments=[segment({0: [(0, 5)]}), segment({0: [(5, 9)]})]))
    again = request(epoch, segments=[segment({0: [(9, 12)]}), segment({0: [(12, 13)]}, DAY + timedelta(days=1))])
    send(again)
    send(again)  # answered as the first time
    assert list(Interval.objects.order_by("start").values_list("revision", flat=True)) == [2, 1]


def test_an_interval_that_ends_before_it_begins_is_refused(source: Source) -> None:
    wrong = segment({0: [(0, 5)]}).model_copy(update={"interval_end": DAY - HOUR})
    with pytest.raises(InvalidInput, match="ends before it begins"):
        send(request(start(source), segments=[wrong]))
    assert not Interval.objects.exists()
