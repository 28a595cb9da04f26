"""Where nearly all rows lie in time, and what lies far from there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controlplane.segments.selectors.bulk import Bulk, Span, bulk

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


def test_more_than_a_hundredth_of_the_rows_is_no_outlier() -> None:
    assert bulk([day(datetime(2000, 1, 1, tzinfo=UTC), 100), *week()]) is None


def test_rows_that_lie_evenly_have_no_bulk() -> None:
    assert bulk([day(FIRST + n * DAY, 10) for n in range(3650)]) is None
    assert (bulk([]), bulk(week()[:1]), bulk(week())) == (None, None, None)
