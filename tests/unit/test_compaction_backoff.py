"""When compaction tries again what has failed: attempts in, the pause out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.compaction.backoff import FIRST_PAUSE, LONGEST_PAUSE, Attempt, health_of_attempts

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def failed(ago: timedelta, permanent: bool = False) -> Attempt:
    return Attempt(True, NOW - ago, "the disk is full", permanent)


@pytest.mark.parametrize(
    ("attempts", "longest", "waits"),
    [
        ([], HOUR, False),
        ([Attempt(False, NOW)], HOUR, False),
        ([failed(timedelta())], HOUR, True),
        ([failed(FIRST_PAUSE)], HOUR, False),
        ([failed(FIRST_PAUSE)] * 2, HOUR, True),  # the second pause is twice as long
        ([failed(2 * FIRST_PAUSE)] * 2, HOUR, False),
        ([failed(FIRST_PAUSE), Attempt(False, NOW), failed(HOUR)], HOUR, False),  # what worked ends the row
        ([failed(HOUR)] * 20, HOUR, False),
        ([failed(HOUR)] * 20, LONGEST_PAUSE, True),
        ([failed(HOUR, permanent=True)], HOUR, True),
        ([failed(LONGEST_PAUSE, permanent=True)], HOUR, False),
    ],
)
def test_a_pause_doubles_up_to_the_longest(attempts: list[Attempt], longest: timedelta, waits: bool) -> None:
    assert bool(health_of_attempts(attempts, NOW, longest)) == waits


def test_the_cause_names_what_failed_when_the_next_attempt_is_and_the_error() -> None:
    health = health_of_attempts([Attempt(True, NOW, "the disk is full", subject="Task t")], NOW)
    assert health is not None and health.calls
    assert health.cause == "Task t failed. The next attempt is at 12:00:30 UTC: the disk is full"
