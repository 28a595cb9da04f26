"""Where nearly all rows lie in time, and what lies far from there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controlplane.segments.selectors.main_range import Bulk, Span, bulk

DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def day(at: datetime, rows: int) -> Span:
    return Span(at, at + DAY, rows)


def week(rows: int = 1000) -> list[Span]:
    return [day(FIRST + n * DAY, rows) for n in range(7)]


def test_one_row_of_long_ago_is_an_outlier() -> None:
    old = day(datetime(2000, 1, 1, tzinfo=UTC), 1)
    assert bulk([old, *week()]) == Bulk(FIRST, FIRST + 7 * DAY, [old])


def test_rows_before_and_after_are_named_the_farthest_first() -> None:
    old, ahead = day(datetime(2025, 1, 1, tzinfo=UTC), 1), day(datetime(2056, 1, 1, tzinfo=UTC), 2)
    found = bulk([old, *week(), ahead])
    assert found is not None
    assert (found.outliers, found.rows_outside, found.more) == ([ahead, old], 3, 0)
    assert (found.start, found.end) == (FIRST, FIRST + 7 * DAY)


def test_of_many_outliers_a_few_are_named() -> None:
    old = [day(datetime(2000, 1, n, tzinfo=UTC), 1) for n in range(1, 11)]
    found = bulk([*old, *week()])
    assert found is not None
    assert (list(found.farthest), found.more, found.rows_outside) == (old[:3], 7, 10)


def test_an_even_year_and_one_old_row_keep_the_newest_days() -> None:
    old = day(datetime(1970, 1, 1, tzinfo=UTC), 1)
    year = [day(FIRST + n * DAY, 100) for n in range(365)]
    assert bulk([old, *year]) == Bulk(FIRST, FIRST + 365 * DAY, [old])


def test_a_day_that_has_few_rows_yet_is_no_outlier() -> None:
    old = day(datetime(1970, 1, 1, tzinfo=UTC), 1)
    month = [day(FIRST + n * DAY, 10_000) for n in range(30)]
    today = day(FIRST + 30 * DAY, 5)
    assert bulk([old, *month, today]) == Bulk(FIRST, FIRST + 31 * DAY, [old])


def test_quiet_days_beside_one_large_day_are_no_outliers() -> None:
    large, quiet = day(FIRST, 100_000), [day(FIRST + n * DAY, 5) for n in range(1, 30)]
    assert bulk([large, *quiet]) is None


def test_rows_as_far_as_the_rest_is_long_are_no_outliers_and_farther_ones_are() -> None:
    near, old = day(FIRST + 14 * DAY, 1), day(datetime(2000, 1, 1, tzinfo=UTC), 1)
    assert bulk([old, *week(), near]) == Bulk(FIRST, FIRST + 15 * DAY, [old])
    ahead = day(FIRST + 15 * DAY, 1)
    assert bulk([old, *week(), ahead]) == Bulk(FIRST, FIRST + 7 * DAY, [old, ahead])


def test_more_than_a_hundredth_of_the_rows_is_no_outlier() -> None:
    assert bulk([day(datetime(2000, 1, 1, tzinfo=UTC), 100), *week()]) is None


def test_rows_that_lie_evenly_have_no_bulk() -> None:
    assert bulk([day(FIRST + n * DAY, 10) for n in range(3650)]) is None
    assert (bulk([]), bulk(week()[:1]), bulk(week())) == (None, None, None)
