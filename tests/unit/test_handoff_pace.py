"""When an indexer hands off, if its spec leaves that to it."""

from __future__ import annotations

import pytest

from ingestion.task.handoff_pace import Backlog, Pace


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def held(records: int = 100, age_s: float = 0.1, quiet_s: float = 0.0, waiting: int | None = 0) -> Backlog:
    return Backlog(records, age_s, quiet_s, waiting)


def test_what_was_read_when_there_is_no_more_is_handed_off_at_once() -> None:
    assert Pace().due(held())
    assert Pace().due(held(records=1, age_s=0.01))


@pytest.mark.parametrize("waiting", [1, 1_000_000, None])
def test_the_first_handoff_of_a_backlog_is_early(waiting: int | None) -> None:
    assert not Pace().due(held(age_s=0.9, waiting=waiting))
    assert Pace().due(held(age_s=1.0, waiting=waiting))


def test_the_next_ones_of_a_backlog_grow_to_half_a_minute() -> None:
    clock = Clock()
    pace, ages = Pace(clock), []
    for _ in range(6):
        ages.append(next(a / 10 for a in range(400) if pace.due(held(age_s=a / 10, waiting=10))))
        clock.now += ages[-1]
        pace.note_handoff(1)
    assert ages == [1, 4, 16, 30, 30, 30]


def test_a_backlog_that_came_to_an_end_is_handed_off_soon_and_the_next_one_begins_anew() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(4):
        pace.note_handoff(1)
        clock.now += 30
    pace.note_handoff(1)
    clock.now += 0.3
    assert pace.due(held(records=50_000, quiet_s=0.1)), "not small: it need not wait"
    assert not pace.due(held(records=49_999, quiet_s=0.1))
    clock.now += 1.7
    assert pace.due(held(records=1, quiet_s=0.1))
    pace.note_handoff(1)
    assert not pace.due(held(age_s=3.9, waiting=5))
    assert pace.due(held(age_s=4.0, waiting=5)), "the second of this backlog, and not the sixth"


@pytest.mark.parametrize(
    ("rate", "seconds"),
    [(1, 2), (200, 2), (2_500, 2), (10_000, 4), (40_000, 8), (250_000, 20), (1_000_000, 30)],
)
def test_a_stream_that_is_kept_up_with_is_handed_off_less_often_the_more_comes(rate: int, seconds: int) -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.note_handoff(1)
    began = clock.now
    due = None
    for step in range(1, 400):
        clock.now = began + step / 10
        if pace.due(held(records=rate * step // 10, age_s=step / 10)):
            due = step / 10
            break
    assert due == seconds


def test_many_segments_of_a_handoff_make_the_next_one_late() -> None:
    """Thousands of small files a minute help nobody."""
    clock = Clock()
    pace = Pace(clock)
    pace.note_handoff(50)
    clock.now += 9.9
    assert not pace.due(held(quiet_s=0.1))
    assert not pace.due(held(age_s=9.9, waiting=10))
    clock.now += 0.1
    assert pace.due(held(quiet_s=0.1))
    pace.note_handoff(2000)
    clock.now += 30
    assert pace.due(held())


def test_what_another_replica_has_handed_off_counts() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.note_handoff(1)
    clock.now += 30
    pace.note_handoff()
    clock.now += 1
    assert not pace.due(held())
    clock.now += 1
    assert pace.due(held())
