"""Rates of sums that grow in bursts: no number that never was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.lag.rates import per_second

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GAP = timedelta(seconds=15)
MILLION = 1_000_000


def rates(*seen: tuple[float, int], gap: timedelta = GAP) -> list[float | None]:
    """Of looks so many seconds after noon."""
    return per_second([(NOON + timedelta(seconds=at), value) for at, value in seen], gap)


def steady(seconds: int, each: int) -> list[tuple[float, int]]:
    return [(at, 7 + at * each) for at in range(0, seconds, 5)]


def test_what_comes_evenly_has_its_rate_once_a_minute_is_known() -> None:
    told = rates(*steady(180, 10))
    assert told[:11] == [None] * 11
    assert told[11:] == [10.0] * (36 - 11)


@pytest.mark.parametrize("every", [20, 30])
def test_what_gathers_and_is_published_at_once_has_the_rate_at_which_it_came(every: int) -> None:
    """60,000 a second, published every so many seconds: between two looks it would be 12 times as much, and nothing."""
    told = rates(*((at, 7 + at // every * every * 60_000) for at in range(0, 240, 5)))[12:]
    assert told == [60_000.0] * len(told)


def test_two_looks_that_nearly_coincide_make_up_no_rate() -> None:
    """One at the end of its five seconds, the next at the beginning of its own."""
    told = rates(*[(at, 7) for at in range(0, 60, 5)], (60.01, MILLION + 7))
    assert told[-1] == pytest.approx(MILLION / 60.01)


def test_a_burst_after_nothing_is_told_over_a_minute() -> None:
    """Nothing had come before: what is there came within the minute."""
    assert rates((0, 0), (5, 210_000), (10, 210_000)) == [0, 3500, 3500]


def test_where_more_had_come_before_the_first_minute_is_not_known() -> None:
    assert rates((0, 100), (5, 210_000)) == [None, None]


def test_what_began_before_the_first_look_has_all_come_since() -> None:
    """Its first rows may be stored before anybody looks."""
    seen = [(NOON + timedelta(seconds=at), value) for at, value in ((0, 100), (5, 210_000), (58, 240_000))]
    assert per_second(seen, GAP, began=NOON - timedelta(seconds=4)) == [100 / 60, 3500, None]
    assert per_second(seen[:2], GAP, began=NOON - timedelta(seconds=16)) == [None, None], "nobody looked in between"
    assert per_second(seen[:2], GAP, began=NOON + timedelta(seconds=1)) == [None, None]
    assert per_second([], GAP, began=NOON) == []


def test_a_gap_has_no_rate() -> None:
    looks = [*steady(60, 10), (100, MILLION), (105, MILLION)]
    assert rates(*looks)[-3:] == [10.0, None, None]
    assert rates(*looks, gap=timedelta(minutes=3))[-2] == pytest.approx((MILLION - 7 - 400) / 60)


def test_minutes_that_have_just_begun_are_told_over_more_than_these_seconds() -> None:
    """Looks of whole minutes are their last ones: at 12:02:03 the one before is of 12:01:58."""
    looks = [(58, 600), (118, 1200), (123, 1200 + 50_000)]
    assert rates(*looks, gap=timedelta(minutes=3)) == [None, 10.0, pytest.approx(50_600 / 65)]


def test_a_sum_that_shrinks_and_a_clock_that_goes_back_make_no_rate_below_nothing() -> None:
    assert rates((0, 100), (60, 10), gap=timedelta(minutes=3)) == [None, 0]
    assert rates((10, 5), (5, 100)) == [None, None]


def test_nothing_was_seen() -> None:
    assert rates() == []
