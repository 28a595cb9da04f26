"""A task's phases from its times: none is longer than it was, none lacks, whatever is not known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.publishing.models import IndexerFence
from controlplane.tasks.models import Task
from controlplane.tasks.phases import phases_of
from frontend.phase_bars import WIDTH, bars_of

START = datetime(2025, 6, 1, 12, tzinfo=UTC)


def at(second: int | None) -> datetime | None:
    return None if second is None else START + timedelta(seconds=second)


def task(status: str, launched: int | None = None, started: int | None = None, ended: int | None = None) -> Task:
    return Task(status=status, created_at=START, launched_at=at(launched), started_at=at(started), ended_at=at(ended))


def fence(reads: int, first: int | None = None, last: int | None = None) -> IndexerFence:
    return IndexerFence(started_at=at(reads), first_publish_at=at(first), last_publish_at=at(last))


TABLE = {
    "waits": (task("PENDING"), [], [("waiting", None)]),
    "launched": (task("PENDING", 5), [], [("waiting", 5), ("launching", None)]),
    "reads": (
        task("RUNNING", 5, 20),
        [fence(30)],
        [("waiting", 5), ("launching", 15), ("starting", 10), ("reading", None)],
    ),
    "publishes": (
        task("RUNNING", 5, 20),
        [fence(30, 40, 50), fence(31, 35, 60)],
        [("waiting", 5), ("launching", 15), ("starting", 10), ("reading", 5), ("publishing", None)],
    ),
    "ended": (
        task("SUCCESS", 5, 20, 100),
        [fence(30, 40, 50), fence(31, 35, 60)],
        [("waiting", 5), ("launching", 15), ("starting", 10), ("reading", 5), ("publishing", 25), ("ending", 40)],
    ),
    "failed before it read": (task("FAILED", 5, None, 9), [], [("waiting", 5), ("launching", 4)]),
    "never launched": (task("FAILED", None, None, 9), [], [("waiting", 9)]),
    "an indexer's clock is behind": (
        task("FAILED", 5, 20, 100),
        [fence(18)],
        [("waiting", 5), ("launching", 15), ("starting", 0), ("reading", 80)],
    ),
}


@pytest.mark.parametrize(("one", "fences", "expected"), TABLE.values(), ids=TABLE)
def test_phases(one: Task, fences: list[IndexerFence], expected: list[tuple[str, int | None]]) -> None:
    found = phases_of(one, fences)
    lasted = [p.duration(START).total_seconds() if p.end else None for p in found]
    assert list(zip([p.name for p in found], lasted, strict=True)) == expected


def test_bars_fill_the_drawing_and_none_is_too_narrow_to_be_seen() -> None:
    one, fences, _ = TABLE["ended"]
    bars = bars_of(phases_of(one, fences), START)
    assert bars[0].x == 0
    assert round(bars[-1].x + bars[-1].width) == WIDTH
    assert min(bar.width for bar in bars) >= 6
    assert bars_of([], START) == []
