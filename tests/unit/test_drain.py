"""When a supervisor has caught up, and with how many indexers it would: lag and rates → a time and numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.lag.trend import LagTrend
from controlplane.supervisors.drain import Code, drain

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
FIVE, HOUR = timedelta(minutes=5), timedelta(hours=1)
# 100,000 became 70,000 in 300 s: 100 fewer each second. 400 a second ended, so 300 arrived.
SHRINKS = LagTrend(
    NOW,
    lag=70_000,
    unread=70_000,
    before=100_000,
    elapsed=FIVE,
    records_per_s=400.0,
    read_in_minute=0,
    ended_per_s=400.0,
)
GROWS = replace(SHRINKS, lag=130_000, unread=130_000)
# 3,000,000 fewer of 3,600,000,000: less than what counts as a trend.
HUGE = replace(SHRINKS, before=3_603_000_000, lag=3_600_000_000, unread=3_600_000_000)

TABLE = {
    "it shrinks": (SHRINKS, Code.DRAINING, timedelta(seconds=700)),
    "by less than five percent": (HUGE, Code.DRAINING, timedelta(seconds=360_000)),
    "by what was read in the last minute": (
        replace(GROWS, read_in_minute=13_000),
        Code.DRAINING,
        timedelta(minutes=10),
    ),
    "records gather, and fewer are unread": (
        replace(SHRINKS, before=70_000, unread=60_000, read_in_minute=1_000),
        Code.DRAINING,
        timedelta(minutes=60),
    ),
    "it grows": (GROWS, Code.NEVER, None),
    "it stays": (replace(SHRINKS, before=70_000), Code.NEVER, None),
    "in more than a year": (
        replace(SHRINKS, before=10**7, lag=10**7, unread=10**7, read_in_minute=1),
        Code.NEVER,
        None,
    ),
    "one record of a trillion": (
        replace(SHRINKS, before=10**12 + 1, lag=10**12, unread=10**12),
        Code.NEVER,
        None,
    ),
    "it keeps up": (replace(SHRINKS, unread=4_000), Code.CAUGHT_UP, None),
    "observed once": (replace(SHRINKS, before=None, elapsed=timedelta()), Code.UNKNOWN, None),
    "observed for half a minute": (replace(SHRINKS, elapsed=timedelta(seconds=30)), Code.UNKNOWN, None),
    "observed long ago": (replace(SHRINKS, at=NOW - timedelta(seconds=61)), Code.UNKNOWN, None),
    "never observed": (None, Code.UNKNOWN, None),
}


@pytest.mark.parametrize(("lag", "code", "left"), TABLE.values(), ids=TABLE)
def test_when_it_has_caught_up(lag: LagTrend | None, code: Code, left: timedelta | None) -> None:
    found = drain(lag, NOW, indexers=4)
    assert found.code == code
    assert found.done_at == (None if left is None else NOW + left)


def test_seconds_for_a_metric() -> None:
    seconds = [drain(lag, NOW, indexers=4).left_s(NOW) for lag in (SHRINKS, GROWS, replace(SHRINKS, unread=0), None)]
    assert seconds == [700.0, float("inf"), 0.0, None]


@pytest.mark.parametrize(
    ("lag", "indexers", "within", "needed"),
    [
        # One of four ends 100 a second. 300 arrive, and 70,000 in an hour are 19.4 more.
        (SHRINKS, 4, HOUR, 4),
        # 70,000 in 100 s are 700 more.
        (SHRINKS, 4, timedelta(seconds=100), 10),
        # 500 arrive; 130,000 in 100 s are 1,300 more: 1,800 by ones that end 100 each.
        (GROWS, 4, timedelta(seconds=100), 18),
        (GROWS, 1, timedelta(seconds=100), 5),
    ],
)
def test_how_many_indexers_would_do_it(lag: LagTrend, indexers: int, within: timedelta, needed: int) -> None:
    [need] = drain(lag, NOW, indexers=indexers, within=[within]).needs
    assert (need.within, need.indexers, need.possible) == (within, needed, True)


def test_a_topic_with_fewer_partitions() -> None:
    [need] = drain(GROWS, NOW, indexers=4, most=17, within=[timedelta(seconds=100)]).needs
    assert (need.indexers, need.possible) == (18, False)
    assert "18 indexers within 1 min 40 s (the topic has fewer partitions)" in need.text


@pytest.mark.parametrize(
    "lag",
    [
        replace(SHRINKS, ended_per_s=0.0),
        replace(SHRINKS, ended_per_s=None),
        # 130,000 are held, and 120,000 ended: more is read than was stored in that time.
        replace(GROWS, lag=260_000, before=260_000, unread=130_000),
    ],
)
def test_an_unknown_rate_says_no_number(lag: LagTrend) -> None:
    found = drain(lag, NOW, indexers=4)
    assert (found.needs, "indexers" in found.text) == ((), False)


def test_no_indexer_says_no_number() -> None:
    assert drain(GROWS, NOW, indexers=0).needs == ()


def test_what_a_person_reads() -> None:
    assert drain(SHRINKS, NOW, indexers=4).text == (
        "At the present rate it has caught up in 11 min 40 s, at 2025-06-01 12:11:40 UTC. To catch up it needs about 4 "
        "indexers within 15 min, about 4 indexers within 1 h, about 4 indexers within 6 h."
    )
    assert "its lag grows by 100 records per second" in drain(GROWS, NOW, indexers=4).text


def test_a_reader_that_has_read_nothing_is_said_to() -> None:
    stands_still = replace(GROWS, records_per_s=0.0, ended_per_s=0.0)
    assert drain(stands_still, NOW, indexers=4).text == (
        "It read nothing in 5 min. At that rate it never catches up: its lag grows by 100 records per second."
    )
