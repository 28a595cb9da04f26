"""Sums by day: whatever changes intervals, sums say what the intervals say, before and after they are summed up."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from controlplane.datasources.models import Datasource
from controlplane.segments import day_sums
from controlplane.segments.models import DaySum, Interval, IntervalChange, IntervalDay
from controlplane.segments.selectors.gaps import gaps
from controlplane.segments.selectors.planning import intervals_within, latest_intervals
from controlplane.segments.selectors.sums import window_sums
from controlplane.segments.selectors.timeline import timeline
from tests.support.publishes import DAY, make_source, request, segment, send, start

HOUR = timedelta(hours=1)


@pytest.fixture
def datasource(db: None) -> Datasource:
    return make_source("flights").datasource


def fill(datasource: Datasource, count: int, of: random.Random) -> None:
    """Hours of many days, some of them empty, among them days, a month and all time."""
    begins = {DAY + of.randrange(24 * 60) * HOUR: HOUR for _ in range(count)}
    begins |= {DAY + of.randrange(60) * timedelta(days=1): timedelta(days=of.choice([1, 30])) for _ in range(9)}
    begins[datetime(1, 1, 1, tzinfo=UTC)] = timedelta(hours=of.choice([1, 24 * 3_000_000]))
    Interval.objects.bulk_create(
        Interval(
            datasource=datasource,
            start=start,
            end=start + length,
            version=of.choice("vw"),
            segments=of.choice([0, 1, 5]),
            rows=of.randrange(1, 100),
            size_bytes=of.randrange(1, 1000),
            min_time=start,
            max_time=start + length / 2,
        )
        for start, length in begins.items()
    )


def check(datasource: Datasource, of: random.Random) -> None:
    live = list(Interval.objects.filter(datasource=datasource, segments__gt=0))
    for _ in range(25):
        low, high = (of.choice([None, DAY + of.randrange(-30, 24 * 70) * HOUR]) for _ in range(2))
        if low and high and low >= high:
            continue
        mine = [i for i in live if (low is None or i.end > low) and (high is None or i.start < high)]
        sums = window_sums(datasource, low, high)
        assert (sums.intervals, sums.segments) == (len(mine), sum(i.segments for i in mine))
        assert (sums.rows, sums.size_bytes) == (sum(i.rows for i in mine), sum(i.size_bytes for i in mine))
        assert {i.pk for i in intervals_within(datasource, low, high)} == {i.pk for i in mine}
        latest = sorted((i.max_time for i in mine if i.max_time), reverse=True)[:7]
        assert [i.max_time for i in latest_intervals(datasource, low, high, 7)] == latest
        drawn = timeline(datasource, start=low, end=high, width=20)
        assert drawn.total_rows == sums.rows
    assert {d.day: (d.intervals, d.rows) for d in DaySum.objects.filter(datasource=datasource)} == by_day(live)
    assert gaps(datasource).count == holes(live)


def by_day(intervals: list[Interval]) -> dict[datetime, tuple[int, int]]:
    found: dict[datetime, tuple[int, int]] = {}
    for i in intervals:
        day = i.start.replace(hour=0)
        count, rows = found.get(day, (0, 0))
        found[day] = count + 1, rows + i.rows
    return found


def holes(intervals: list[Interval]) -> int:
    found, reached = 0, None
    for i in sorted(intervals, key=lambda i: i.start):
        found += reached is not None and i.start > reached
        reached = i.end if reached is None else max(reached, i.end)
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sums_are_true_at_any_moment(datasource: Datasource, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[timeline.__module__], "MAX_INTERVALS", 100)
    of, other = random.Random(seed), make_source("others", topic_id="topic-id-2").datasource
    fill(datasource, 300, of)
    fill(other, 50, of)
    check(datasource, of)  # by the intervals
    assert day_sums.sum_up() and not IntervalChange.objects.exists() and day_sums.sum_up() == 0
    check(datasource, of)  # by the sums
    some = Interval.objects.filter(datasource=datasource, start__gt=DAY + timedelta(days=of.randrange(50)))
    some.filter(segments=1).update(rows=F("rows") + 7, max_time=F("end"), segments=3)
    some.filter(segments=5).update(segments=0)
    some.filter(segments=0).delete()
    check(datasource, of)  # by both
    day_sums.sum_up()
    check(datasource, of)
    check(other, of)


def test_what_publishes_while_days_are_summed_up_is_not_lost(datasource: Datasource) -> None:
    source = datasource.sources.get()
    send(request(start(source), segments=[segment({0: [(0, 5)]})]))
    day_sums.sum_up()
    send(request(start(source), segments=[segment({0: [(5, 9)]})]))
    assert window_sums(datasource).rows == 9  # its change is named, whatever the sum says
    assert IntervalDay.objects.get().rows == 5


def test_a_datasource_that_goes_leaves_no_sums(datasource: Datasource) -> None:
    fill(datasource, 20, random.Random(4))
    day_sums.sum_up()
    Interval.objects.filter(datasource=datasource).update(version=Now())
    datasource.sources.all().delete()
    datasource.delete()
    day_sums.sum_up()
    assert not IntervalDay.objects.exists() and not IntervalChange.objects.exists()
