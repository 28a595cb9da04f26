"""Core-seconds of tasks by team and month: for how long they held slots → sums."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from controlplane.metrics.usage import Span, core_ms, months

MIDNIGHT = datetime(2026, 4, 1, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def test_a_time_is_cut_where_a_month_begins() -> None:
    cut = months(MIDNIGHT - MINUTE, MIDNIGHT + MINUTE)
    assert cut == [("2026-03", MIDNIGHT - MINUTE, MIDNIGHT), ("2026-04", MIDNIGHT, MIDNIGHT + MINUTE)]
    assert [month for month, _, _ in months(MIDNIGHT - 100 * DAY, MIDNIGHT)] == [
        "2025-12",
        "2026-01",
        "2026-02",
        "2026-03",
    ]
    assert months(MIDNIGHT, MIDNIGHT) == []


def test_months_are_those_of_utc() -> None:
    there = MIDNIGHT.astimezone(timezone(timedelta(hours=-7)))
    assert [month for month, _, _ in months(there, there + MINUTE)] == ["2026-04"]


def test_each_slot_counts_for_as_long_as_it_was_held() -> None:
    since, until = MIDNIGHT - MINUTE, MIDNIGHT + MINUTE
    spans = [
        Span(1, 3, MIDNIGHT - DAY),  # all the time
        Span(1, 1, MIDNIGHT - DAY, MIDNIGHT - MINUTE / 2),  # half a minute of March
        Span(2, 2, MIDNIGHT + MINUTE / 2),  # half a minute of April
        Span(2, 5, MIDNIGHT - DAY, MIDNIGHT - MINUTE),  # over before
        Span(2, 5, MIDNIGHT + MINUTE),  # after it
    ]
    assert core_ms(spans, since, until) == {
        (1, "2026-03"): 3 * 60_000 + 30_000,
        (1, "2026-04"): 3 * 60_000,
        (2, "2026-04"): 2 * 30_000,
    }
