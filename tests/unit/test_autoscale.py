"""The autoscaler's decision: what was observed → how many indexers; and what holds for every series of lags."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.supervisors.autoscale import (
    LagObservation,
    Reason,
    Scaling,
    autoscale,
    is_due,
    judge,
    wanted_task_count,
)
from controlplane.tasks.diagnosis import options_without_effect
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.django_cast import spec_for

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
CONFIG = AutoScalerConfig(
    enableTaskAutoScaler=True,
    taskCountMin=1,
    taskCountMax=6,
    lagCollectionIntervalMillis=10_000,
    lagCollectionRangeMillis=100_000,
    scaleOutThreshold=1000,
    scaleInThreshold=100,
)


def lags(*values: int) -> list[tuple[datetime, int]]:
    """One every ten seconds, the last one now."""
    return [(NOW - timedelta(seconds=10 * (len(values) - n - 1)), lag) for n, lag in enumerate(values)]


CALM = LagObservation(now=NOW, config=CONFIG, task_count=3, since=NOW - timedelta(hours=1), samples=lags(*[500] * 10))
HIGH = replace(CALM, samples=lags(*[500] * 7, 1000, 2000, 3000))
LOW = replace(CALM, samples=lags(101, *[100] * 9))

TABLE: dict[str, tuple[LagObservation, int | None]] = {
    "neither high nor low": (CALM, None),
    "three of ten are high: two more": (HIGH, 5),
    "two of ten are not enough": (replace(CALM, samples=lags(*[500] * 8, 1000, 1000)), None),
    "no more than the most": (replace(HIGH, task_count=5), 6),
    "at the most": (replace(HIGH, task_count=6), None),
    "no more than there are partitions": (replace(HIGH, partitions=4), 4),
    "as many as there are partitions": (replace(HIGH, partitions=3), None),
    "nine of ten are low: one fewer": (LOW, 2),
    "eight of ten are not enough": (replace(CALM, samples=lags(101, 101, *[100] * 8)), None),
    "at the fewest": (replace(LOW, task_count=1), None),
    "high lags matter more than low ones": (replace(CALM, samples=lags(*[0] * 7, 1000, 1000, 1000)), 5),
    "it changed something lately": (replace(HIGH, last_action_at=NOW - timedelta(minutes=9, seconds=59)), None),
    "it may add sooner than it may change": (
        replace(
            HIGH,
            config=CONFIG.model_copy(update={"minScaleUpDelay": timedelta(minutes=1)}),
            last_action_at=NOW - timedelta(minutes=1),
        ),
        5,
    ),
    "it may add sooner, not remove": (
        replace(
            LOW,
            config=CONFIG.model_copy(update={"minScaleUpDelay": timedelta(minutes=1)}),
            last_action_at=NOW - timedelta(minutes=2),
        ),
        None,
    ),
    "it must wait longer before it removes": (
        replace(
            LOW,
            config=CONFIG.model_copy(update={"minScaleDownDelay": timedelta(minutes=20)}),
            last_action_at=NOW - timedelta(minutes=15),
        ),
        None,
    ),
    "that was long ago": (replace(HIGH, last_action_at=NOW - timedelta(minutes=10)), 5),
    "lags before the last change do not count": (
        replace(
            HIGH,
            config=CONFIG.model_copy(update={"minTriggerScaleActionFrequencyMillis": 0}),
            last_action_at=NOW,
        ),
        None,
    ),
    "lags before the spec do not count": (replace(HIGH, since=NOW), None),
    "lags beyond the range do not count": (replace(CALM, samples=[(NOW - timedelta(seconds=101), 9999)]), None),
    "no lag was seen": (replace(CALM, samples=[]), None),
    "of an interval the last one counts": (
        replace(CALM, samples=[(NOW - timedelta(seconds=2), 9999), (NOW - timedelta(seconds=1), 500)]),
        None,
    ),
    "a handover is under way": (replace(HIGH, steady=False), None),
    "what it asked for is not there yet": (replace(HIGH, granted=False), None),
    "what it asked for is not there, and not needed": (replace(LOW, granted=False), 2),
}


@pytest.mark.parametrize("case", TABLE)
def test_decision(case: str) -> None:
    seen, expected = TABLE[case]
    found = autoscale(seen)
    assert (found and (found.before, found.after)) == (None if expected is None else (seen.task_count, expected))


def test_it_says_why() -> None:
    assert autoscale(HIGH) == Scaling(3, 5, "The lag was at least 1,000 in 3 of 10 samples; it is 3,000 now.")


REASONS: dict[Reason, tuple[str, str]] = {
    Reason.SCALED: ("three of ten are high: two more", "in 3 of 10 samples"),
    Reason.LAG_IN_BOUNDS: ("neither high nor low", "It is 500 now."),
    Reason.NOT_LONG_ENOUGH: (
        "two of ten are not enough",
        "in 2 of 10 samples; it is 1,000 now. It adds indexers from 30%",
    ),
    Reason.AT_MAXIMUM: ("at the most", "as many indexers as it may: 6."),
    Reason.AT_PARTITIONS: ("as many as there are partitions", "no more than 3 partitions"),
    Reason.AT_MINIMUM: ("at the fewest", "as few indexers as it may: 1."),
    Reason.NO_FREE_SLOT: ("what it asked for is not there yet", "still wait for free slots"),
    Reason.COOLDOWN: ("it changed something lately", "again at 2025-06-01 12:00:01 UTC."),
    Reason.NOT_READING: ("a handover is under way", "a task hands off"),
    Reason.LAG_UNKNOWN: ("no lag was seen", "No lag was observed"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_it_says_why_it_does_nothing(reason: Reason) -> None:
    case, says = REASONS[reason]
    found = judge(TABLE[case][0])
    assert found.reason == reason
    assert says in found.text


def test_eight_low_lags_of_ten_are_not_enough() -> None:
    found = judge(TABLE["eight of ten are not enough"][0])
    assert found.reason == Reason.NOT_LONG_ENOUGH
    assert found.text.endswith("It removes indexers from 90% of the samples on.")


def test_every_reason_is_shown_by_a_case() -> None:
    assert {*REASONS, Reason.START_DELAY} == set(Reason), "the delay is no matter of a lag"


def test_when_it_looks() -> None:
    fresh = replace(CALM, since=NOW - timedelta(minutes=4))
    assert not is_due(fresh)
    assert is_due(CALM)
    assert not is_due(replace(CALM, last_check_at=NOW - timedelta(seconds=59)))
    assert is_due(replace(CALM, last_check_at=NOW - timedelta(seconds=60)))


@given(
    values=st.lists(st.integers(0, 5000), max_size=12),
    count=st.integers(1, 6),
    bounds=st.tuples(st.integers(1, 6), st.integers(1, 6)).map(sorted),
    steps=st.tuples(st.integers(1, 10), st.integers(1, 10)),
    partitions=st.none() | st.integers(1, 8),
)
def test_it_moves_towards_its_bounds_and_never_beyond(
    values: list[int], count: int, bounds: list[int], steps: tuple[int, int], partitions: int | None
) -> None:
    changes = {"taskCountMin": bounds[0], "taskCountMax": bounds[1], "scaleOutStep": steps[0], "scaleInStep": steps[1]}
    config = CONFIG.model_copy(update=changes)
    seen = replace(CALM, config=config, task_count=count, samples=lags(*values), partitions=partitions)
    found = autoscale(seen)
    if found is not None:
        assert found.after != found.before
        if found.after > found.before:
            assert found.after <= min(bounds[1], partitions or bounds[1])
        else:
            assert found.after >= min(bounds[0], partitions or bounds[0])


# The number that is wanted, and what a spec may say


def scaler(**changes: Any) -> dict[str, Any]:
    return {"enableTaskAutoScaler": True, "taskCountMin": 2, "taskCountMax": 5, **changes}


@pytest.mark.parametrize(
    ("config", "decided", "wanted"),
    [
        (None, None, 7),
        ({}, 4, 7),
        ({"enableTaskAutoScaler": False, "taskCountMax": 5}, 4, 7),
        (scaler(), None, 2),
        (scaler(taskCountStart=3), None, 3),
        (scaler(taskCountStart=3), 4, 4),
        (scaler(), 9, 5),
        (scaler(), 1, 2),
    ],
)
def test_how_many_a_supervisor_wants(config: dict[str, Any] | None, decided: int | None, wanted: int) -> None:
    spec = parse_supervisor_spec(spec_for("scaled", taskCount=7, autoScalerConfig=config))
    assert wanted_task_count(spec.spec.ioConfig, decided) == wanted


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"enableTaskAutoScaler": True}, "taskCountMax and taskCountMin are required"),
        (scaler(taskCountMin=6), "taskCountMax (5) is less than taskCountMin (6)"),
        (scaler(taskCountStart=6), "taskCountStart (6) is not between"),
        (scaler(taskCountStart=1), "taskCountStart (1) is not between"),
        (scaler(lagCollectionIntervalMillis=2, lagCollectionRangeMillis=1), "is longer than"),
    ],
)
def test_what_does_not_fit_together_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_supervisor_spec(spec_for("scaled", autoScalerConfig=config))
    [issue] = refused.value.issues
    assert issue.path == "ioConfig.autoScalerConfig"
    assert message in issue.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("autoScalerStrategy", "costBased"),
        ("triggerScaleOutFractionThreshold", 1.1),
        ("scaleInStep", 0),
        ("taskCountMax", 0),
        ("stopTaskCountRate", 0.5),
    ],
)
def test_a_wrong_value_is_named(field: str, value: Any) -> None:
    with pytest.raises(SpecError) as refused:
        parse_supervisor_spec(spec_for("scaled", autoScalerConfig=scaler(**{field: value})))
    assert [i.path for i in refused.value.issues] == [f"ioConfig.autoScalerConfig.{field}"]


def test_an_autoscaler_that_is_off_need_not_fit_together() -> None:
    spec = parse_supervisor_spec(spec_for("scaled", autoScalerConfig={"taskCountMax": 1, "taskCountMin": 2}))
    assert spec.spec.ioConfig.auto_scaler is None


def test_what_it_can_not_do_is_said() -> None:
    spec = spec_for("scaled", autoScalerConfig=scaler(lagCollectionIntervalMillis=1000))
    [of_a_task] = options_without_effect(spec, supervised=False)
    assert of_a_task.startswith("ioConfig.autoScalerConfig: ")
    assert [o.split(":")[0] for o in options_without_effect(spec, supervised=True)] == [
        "ioConfig.autoScalerConfig.lagCollectionIntervalMillis"
    ]
