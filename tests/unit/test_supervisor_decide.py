"""The supervisor's decision as a table: what was observed → what is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.supervisors.decide import Decision, Observed, SeenTask, back_off, decide, failures_in_a_row

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
CALM = Observed(now=NOW, suspended=False, terminated=False, version=1, task_count=2, tasks=[])
RUNNING = SeenTask(
    id="running",
    spec_version=1,
    active=True,
    reading=True,
    ready=True,
    failed=False,
    running_goal=True,
    indexers_wanted=2,
    created_at=NOW - timedelta(minutes=5),
)

STARTING = replace(RUNNING, id="starting", reading=False, ready=False)
WAITING = replace(STARTING, id="waiting", ready=True)


def failed(seconds_ago: float, lived: float = 5) -> SeenTask:
    ended = NOW - timedelta(seconds=seconds_ago)
    return replace(
        RUNNING,
        id=f"failed-{seconds_ago}",
        active=False,
        reading=False,
        ready=False,
        failed=True,
        created_at=ended - timedelta(seconds=lived),
        ended_at=ended,
    )


TABLE: dict[str, tuple[Observed, Decision]] = {
    "nothing runs: start": (CALM, Decision("PENDING", "CREATING_TASKS", start=True)),
    "nothing ran yet, and it is too soon": (
        replace(CALM, not_before=NOW + timedelta(seconds=5)),
        Decision("PENDING", "PENDING", next_start_at=NOW + timedelta(seconds=5)),
    ),
    "it was too soon before": (
        replace(CALM, not_before=NOW - timedelta(seconds=5)),
        Decision("PENDING", "CREATING_TASKS", start=True),
    ),
    "it runs: nothing to do": (replace(CALM, tasks=[RUNNING]), Decision("RUNNING", "RUNNING")),
    "it starts": (replace(CALM, tasks=[STARTING]), Decision("PENDING", "STARTING_TASK")),
    "another task count: scale": (
        replace(CALM, task_count=5, tasks=[RUNNING]),
        Decision("RUNNING", "RUNNING", scale={"running": 5}),
    ),
    "another task count, which the next task takes up: it starts": (
        replace(CALM, task_count=5, scales_in_place=False, tasks=[RUNNING]),
        Decision("RUNNING", "CREATING_TASKS", start=True),
    ),
    "another task count: the next task waits for the old, which finishes": (
        replace(CALM, task_count=5, scales_in_place=False, tasks=[replace(WAITING, indexers_wanted=5), RUNNING]),
        Decision("RUNNING", "RUNNING", finish=["running"]),
    ),
    "another spec: start the new, and let the old read on": (
        replace(CALM, version=2, tasks=[RUNNING]),
        Decision("RUNNING", "CREATING_TASKS", start=True),
    ),
    "another spec: the new is starting": (
        replace(CALM, version=2, tasks=[replace(STARTING, spec_version=2), RUNNING]),
        Decision("RUNNING", "RUNNING"),
    ),
    "another spec: the new waits for the old, which finishes": (
        replace(CALM, version=2, tasks=[replace(WAITING, spec_version=2), RUNNING]),
        Decision("RUNNING", "RUNNING", finish=["running"]),
    ),
    "another spec: there is no room for the new beside the old, which finishes": (
        replace(CALM, version=2, tasks=[replace(STARTING, spec_version=2, crowded_out=True), RUNNING]),
        Decision("PENDING", "STARTING_TASK", finish=["running"]),
    ),
    "another spec before the last one's task was up: that one ends, the one that reads goes on": (
        replace(CALM, version=3, tasks=[replace(STARTING, spec_version=2), RUNNING]),
        Decision("RUNNING", "CREATING_TASKS", start=True, finish=["starting"]),
    ),
    "another spec whose task failed: the old reads on": (
        replace(CALM, version=2, tasks=[failed(0.5), RUNNING]),
        Decision("RUNNING", "BACKING_OFF", failures=1, next_start_at=NOW + timedelta(seconds=0.5)),
    ),
    "it has read long enough: the next one starts": (
        replace(CALM, tasks=[replace(RUNNING, expired=True)]),
        Decision("RUNNING", "CREATING_TASKS", start=True),
    ),
    "it has read long enough, and the next one waits: it finishes": (
        replace(CALM, tasks=[WAITING, replace(RUNNING, expired=True)]),
        Decision("RUNNING", "RUNNING", finish=["running"]),
    ),
    "another spec that differs in the task count only: keep": (
        replace(CALM, version=2, task_count=3, tasks=[RUNNING], same_task=frozenset({1})),
        Decision("RUNNING", "RUNNING", scale={"running": 3}),
    ),
    "the old one still finishes while the new one reads": (
        replace(
            CALM, version=2, tasks=[replace(RUNNING, id="new", spec_version=2), replace(RUNNING, running_goal=False)]
        ),
        Decision("RUNNING", "RUNNING"),
    ),
    "two of the same: one finishes": (
        replace(CALM, tasks=[RUNNING, replace(RUNNING, id="second")]),
        Decision("RUNNING", "RUNNING", finish=["second"]),
    ),
    "suspended: finish": (
        replace(CALM, suspended=True, tasks=[RUNNING]),
        Decision("STOPPING", "STOPPING", finish=["running"]),
    ),
    "suspended and at rest": (replace(CALM, suspended=True), Decision("SUSPENDED", "SUSPENDED")),
    "terminated and at rest": (replace(CALM, terminated=True), Decision("STOPPING", "TERMINATED")),
    "one failure, too soon": (
        replace(CALM, tasks=[failed(0.5)]),
        Decision("RUNNING", "BACKING_OFF", failures=1, next_start_at=NOW + timedelta(seconds=0.5)),
    ),
    "one failure, time is over": (
        replace(CALM, tasks=[failed(1.5)]),
        Decision("RUNNING", "CREATING_TASKS", start=True, failures=1),
    ),
    "four failures in a row: 8 s, unhealthy": (
        replace(CALM, tasks=[failed(1), failed(20), failed(40), failed(60)]),
        Decision("UNHEALTHY_TASKS", "UNHEALTHY_TASKS", failures=4, next_start_at=NOW + timedelta(seconds=7)),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_decision(case: str) -> None:
    seen, expected = TABLE[case]
    assert decide(seen) == expected


def test_a_task_that_ran_well_begins_the_count_anew() -> None:
    assert failures_in_a_row([failed(1), failed(100, lived=3600), failed(8000)]) == 2


def test_a_success_ends_the_count() -> None:
    assert failures_in_a_row([failed(1), replace(failed(50), failed=False), failed(100)]) == 1


def test_back_off_grows_to_a_minute() -> None:
    assert [back_off(n).total_seconds() for n in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]
