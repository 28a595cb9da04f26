"""An autoscaler on a recorded lag: it decides as the real one, at its own times; and how runs and steps are drawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controlplane.supervisors.simulation import simulate
from controlplane.tasks.models import Status, Task
from frontend.run_bars import drawing_of as runs_of
from frontend.scaling_chart import drawing_of as steps_of
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig

START = datetime(2025, 6, 1, 12, tzinfo=UTC)
CONFIG = AutoScalerConfig(
    enableTaskAutoScaler=True,
    taskCountMin=1,
    taskCountMax=4,
    lagCollectionIntervalMillis=10_000,
    lagCollectionRangeMillis=60_000,
    scaleOutThreshold=1000,
    scaleInThreshold=100,
    scaleActionStartDelayMillis=60_000,
    scaleActionPeriodMillis=60_000,
    minTriggerScaleActionFrequencyMillis=120_000,
    scaleOutStep=2,
)


def minutes(*lags: int) -> list[tuple[datetime, int]]:
    """Each for a minute, looked at every ten seconds."""
    return [(START + timedelta(seconds=10 * (6 * n + k)), lag) for n, lag in enumerate(lags) for k in range(6)]


def test_it_scales_out_to_the_most_waits_and_comes_back() -> None:
    found = simulate(CONFIG, minutes(*[2000] * 5, *[0] * 10), begin_with=1)
    after = [(int((d.at - START).total_seconds() // 60), d.scaling.after) for d in found.decisions]
    assert after == [(1, 3), (3, 4), (6, 3), (8, 2), (10, 1)]
    assert found.counts[0] == (START, 1)
    assert [count for _, count in found.counts] == [1, 3, 4, 3, 2, 1]


def test_no_more_than_there_are_partitions_and_nothing_without_samples() -> None:
    assert simulate(CONFIG, minutes(*[2000] * 10), begin_with=1, partitions=2).counts[-1][1] == 2
    assert simulate(CONFIG, [], begin_with=1).counts == []
    assert simulate(CONFIG, minutes(500, 500, 500), begin_with=2).decisions == []


def test_a_period_of_a_millisecond_costs_no_more_looks_than_there_are() -> None:
    config = CONFIG.model_copy(update={"scaleActionPeriodMillis": 1, "scaleActionStartDelayMillis": 0})
    assert simulate(config, minutes(*[500] * 600), begin_with=1).checks <= 2001


def test_steps_go_from_edge_to_edge() -> None:
    samples = minutes(0, 100)
    drawn = steps_of(samples, [(START, 1), (samples[-1][0], 2)], [])
    assert drawn.steps.startswith("M0.0,")
    assert drawn.steps.endswith("H1000.0")
    assert drawn.actual == ""
    assert drawn.max_lag == 100
    assert drawn.summary == "1 scale action, from 1 to 2 indexers, at most 2."


def run(begin: int, end: int | None, status: str = "SUCCESS", started: int | None = None) -> Task:
    """Minutes after the start of the drawing."""
    at = [None if n is None else START + timedelta(minutes=n) for n in (started, end)]
    created = START + timedelta(minutes=begin)
    return Task(pk=f"t{begin}", status=status, created_at=created, started_at=at[0], ended_at=at[1])


def test_runs_that_overlap_are_drawn_below_each_other() -> None:
    end = START + timedelta(minutes=100)
    drawn = runs_of([run(50, None, "RUNNING", 60), run(-20, 20), run(20, 60, "FAILED", 25)], START, end)
    assert [(b.task.pk, b.x, b.width, b.wait) for b in drawn.bars] == [
        ("t-20", 0.0, 200.0, 200.0),
        ("t20", 200.0, 400.0, 50.0),
        ("t50", 500.0, 500.0, 100.0),
    ]
    assert [b.tone for b in drawn.bars] == ["ok", "bad", "work"]
    assert [b.y for b in drawn.bars] == [4, 4, 26]
    assert drawn.summary == "3 runs, 1 of them failed"
    assert drawn.bars[0].task.status == Status.SUCCESS


def test_a_run_of_a_moment_can_be_seen() -> None:
    drawn = runs_of([run(100, None, "PENDING")], START, START + timedelta(minutes=100))
    assert (drawn.bars[0].x, drawn.bars[0].width) == (997.0, 3.0)
