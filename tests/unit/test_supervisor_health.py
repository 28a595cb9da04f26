"""The health of a supervisor by what was observed of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controlplane.common.health import Kind, Trend, codes_of
from controlplane.lag.trend import LagTrend
from controlplane.supervisors.health_rules import health_of
from tests.support.health_cases import BY_OPS, CALM, CAUGHT_UP, EARLIER, GROWING, NOW, STUCK, TABLE, WAITS


@pytest.mark.parametrize(("changes", "kind", "code", "says"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_health(changes: dict[str, Any], kind: Kind, code: str, says: list[str]) -> None:
    said = health_of(replace(CALM, **changes))
    assert (said.kind, said.code) == (kind, code)
    for text in says:
        assert text in said.text
    assert bool(said.action) >= said.calls, "what needs a person says what to do"


def test_every_code_is_in_the_table() -> None:
    assert {row[3] for row in TABLE} == set(codes_of("supervisor"))


def test_what_calls_somebody() -> None:
    assert [kind for kind in Kind if replace(health_of(CALM), kind=kind).calls] == [Kind.NEEDS_ATTENTION, Kind.FAILED]


@pytest.mark.parametrize(
    ("before", "lag", "trend"),
    [(1000, 1051, Trend.GROWING), (1000, 1050, Trend.STEADY), (1000, 949, Trend.SHRINKING), (None, 9, Trend.STEADY)],
)
def test_trend_against_some_minutes_before(before: int | None, lag: int, trend: Trend) -> None:
    seen = replace(CALM, lag=replace(STUCK, before=before, lag=lag, unread=lag), behind_since=EARLIER)
    assert health_of(seen).trend == trend


def test_what_is_behind_is_known_whatever_else_is_said() -> None:
    assert health_of(replace(CALM, suspended=BY_OPS, lag=GROWING)).behind == GROWING.lag
    assert health_of(replace(CALM, lag=None)).behind is None


def test_more_than_there_will_ever_be_needs_somebody(settings: Any) -> None:
    settings.WORKER_CAPACITY = 8
    said = health_of(replace(CALM, slot_wait=replace(WAITS, needed=9)))
    assert said.kind == Kind.NEEDS_ATTENTION
    assert "has 8" in said.text


@pytest.mark.parametrize(
    ("now", "says"),
    [(3.0, "stores 3 records per second."), (0.4, "stores what comes in."), (0.0, "no records arrived for a minute.")],
)
def test_what_it_stores_is_of_the_last_minute(now: float, says: str) -> None:
    """Not of five, over which a burst that has long passed would still be told."""
    assert health_of(replace(CALM, lag=replace(CAUGHT_UP, records_per_s_now=now))).text.endswith(says)


def test_of_a_reader_that_is_seconds_old_nothing_is_said_of_a_minute() -> None:
    young = LagTrend(NOW, lag=500, unread=0, records_per_s=0.0, records_per_s_now=0.0)
    assert health_of(replace(CALM, lag=young)).text == "It keeps up with its topic and stores what comes in."
