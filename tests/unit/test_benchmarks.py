"""What benchmarks are held to."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.__main__ import NAMES, _exit_code
from benchmarks.compaction_beside import Sample, growth
from benchmarks.measure import longest_gaps, longest_silence
from benchmarks.targets import TARGETS, Target


def test_every_benchmark_has_targets() -> None:
    assert set(TARGETS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_run(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__ and callable(module.run) and callable(module.add_options)


@pytest.mark.parametrize(
    ("bound", "figure", "met"),
    [("at least", 2.0, True), ("at least", 1.99, False), ("at most", 2.0, True), ("at most", 2.01, False)],
)
def test_a_target_is_met_at_its_value(bound: str, figure: float, met: bool) -> None:
    target = Target("rate", bound, 2.0)  # type: ignore[arg-type]  # a parameter is any text
    assert target.met_by({"rate": figure}) is met
    assert not target.met_by({}) and not target.met_by({"rate": None})


def test_the_exit_code_tells_a_loss_from_slowness() -> None:
    good = {"peak_rss_mb": 399, "lost": 0, "duplicated": 0}
    assert _exit_code({"memory": good}) == 0
    assert _exit_code({"memory": {**good, "peak_rss_mb": 401}}) == 3
    assert _exit_code({"memory": {**good, "lost": 1}}) == 1
    assert _exit_code({"soak": {"lost": 0, "duplicated": 0, "wrong": ["an offset is in two segments"]}}) == 1
    assert _exit_code({"soak": {"lost": 0, "duplicated": 0, "wrong": []}}) == 0
    assert _exit_code({"memory": None}) == 1


def test_growth_is_told_from_what_was_written() -> None:
    """300 segments in ten minutes; those in use: all of them, as many as before, or half of the new ones."""
    for share in (1.0, 0.0, 0.5):
        looks = [Sample(at=10.0 * n, rows=0, segments=5 * n, live=int(40 + share * 5 * n)) for n in range(61)]
        assert growth(looks) == pytest.approx(share, abs=0.01)
    early = [Sample(at=10.0 * n, rows=0, segments=5 * n, live=min(20, 5 * n)) for n in range(13)]
    assert growth(early) == pytest.approx(0, abs=0.01)  # of two minutes the second


def test_a_silence_belongs_to_each_step_that_it_touches() -> None:
    """Publishes at these seconds; the last step waits three seconds more for one that does not come."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    times = [began + timedelta(seconds=s) for s in (0, 1, 2, 9, 10, 11, 12)]
    steps = [
        (name, began + timedelta(seconds=first), began + timedelta(seconds=end))
        for name, first, end in (("web", 1, 4), ("worker", 4, 9), ("beat", 9, 12), ("tasks", 12, 15))
    ]
    assert longest_gaps(times, steps) == {"web": 7, "worker": 7, "beat": 1, "tasks": 3}
    assert longest_gaps([], steps) == {"web": 3, "worker": 5, "beat": 3, "tasks": 3}


@pytest.mark.parametrize(
    ("times", "excused", "seconds"),
    [
        ([], [], 100),
        ([-5, 30, 45, 120], [], 55),  # those before and after it are of no use
        ([10, 90], [], 80),
        ([10, 90], [(20, 50)], 50),
        ([10, 90], [(40, 60), (20, 50), (45, 48)], 40),  # a time counts once, whatever was away in it
        ([10, 90], [(0, 20), (80, 200)], 60),
        ([10, 90], [(95, 99), (-9, -1)], 80),
        ([10, 90], [(-50, 500)], 0),
    ],
)
def test_what_was_away_is_no_silence(times: list[int], excused: list[tuple[int, int]], seconds: float) -> None:
    """All in seconds of a run of 100."""
    began = datetime(2026, 1, 1, tzinfo=UTC)

    def at(second: int) -> datetime:
        return began + timedelta(seconds=second)

    spans = [(at(first), at(last)) for first, last in excused]
    assert longest_silence([at(t) for t in times], at(0), at(100), spans) == seconds
