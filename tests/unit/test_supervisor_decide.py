"""The supervisor's decision as a table: what was observed → what is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from controlplane.supervisors.decide import (
    CALM_FOR,
    Decision,
    LastGood,
    Observation,
    Runs,
    TaskSnapshot,
    Thresholds,
    backoff_delay,
    calm_until,
    decide,
    failed_starts,
    failures_in_a_row,
)
from controlplane.supervisors.states import Detail, State
from tests.support.decisions import CALM, FRESH, LOST, NOW, REACHED, RUNNING, STARTING, UNREACHED, WAITING, failed

TABLE: dict[str, tuple[Observation, Decision]] = {
    "nothing runs: start": (CALM, Decision(Detail.RUNNING, start=1)),
    "nothing ran yet, and it is too soon": (
        replace(FRESH, not_before=NOW + timedelta(seconds=5)),
        Decision(Detail.PENDING, next_start_at=NOW + timedelta(seconds=5)),
    ),
    "it was too soon before": (
        replace(REACHED, not_before=NOW - timedelta(seconds=5)),
        Decision(Detail.CREATING_TASKS, start=1),
    ),
    "it runs: nothing to do": (replace(CALM, tasks=[RUNNING]), Decision(Detail.RUNNING)),
    "first iterations: Kafka answered, a task is made": (REACHED, Decision(Detail.CREATING_TASKS, start=1)),
    "first iterations: Kafka did not answer, nothing is started": (
        replace(FRESH, runs=UNREACHED),
        Decision(Detail.CONNECTING_TO_STREAM),
    ),
    "first iterations: the task starts": (
        replace(REACHED, tasks=[STARTING]),
        Decision(Detail.CREATING_TASKS),
    ),
    "first iterations after a suspension: the task from before still publishes": (
        replace(REACHED, tasks=[replace(RUNNING, goal_is_run=False)]),
        Decision(Detail.DISCOVERING_INITIAL_TASKS, start=1),
    ),
    "first iterations: the task reads": (replace(REACHED, tasks=[RUNNING]), Decision(Detail.RUNNING)),
    "later on a task that starts is nothing new": (
        replace(CALM, tasks=[STARTING]),
        Decision(Detail.RUNNING),
    ),
    "another task count: scale": (
        replace(CALM, task_count=5, tasks=[RUNNING]),
        Decision(Detail.RUNNING, scale={"running": 5}),
    ),
    "another task count, which the next task takes up: it starts": (
        replace(CALM, task_count=5, scales_in_place=False, tasks=[RUNNING]),
        Decision(Detail.RUNNING, start=1),
    ),
    "another task count: the next task waits for the old, which finishes": (
        replace(CALM, task_count=5, scales_in_place=False, tasks=[replace(WAITING, indexers_wanted=5), RUNNING]),
        Decision(Detail.RUNNING, finish=["running"]),
    ),
    "another spec: start the new, and let the old read on": (
        replace(REACHED, version=2, tasks=[RUNNING]),
        Decision(Detail.RUNNING, start=1),
    ),
    "another spec, and Kafka is away: the old reads on alone": (
        replace(FRESH, runs=UNREACHED, version=2, tasks=[RUNNING]),
        Decision(Detail.RUNNING),
    ),
    "another spec: the new is starting": (
        replace(CALM, version=2, tasks=[replace(STARTING, spec_version=2), RUNNING]),
        Decision(Detail.RUNNING),
    ),
    "another spec: the new waits for the old, which finishes": (
        replace(CALM, version=2, tasks=[replace(WAITING, spec_version=2), RUNNING]),
        Decision(Detail.RUNNING, finish=["running"]),
    ),
    "another spec: there is no room for the new beside the old, which finishes": (
        replace(CALM, version=2, tasks=[replace(STARTING, spec_version=2, waits_for_predecessor=True), RUNNING]),
        Decision(Detail.RUNNING, finish=["running"]),
    ),
    "another spec: the new has found no slot for some time, and the old reads on": (
        replace(CALM, version=2, tasks=[replace(STARTING, spec_version=2, waits_for="slot"), RUNNING]),
        Decision(Detail.WAITING_FOR_SLOT),
    ),
    "another spec: the new has waited for long enough, and the old makes room": (
        replace(
            CALM,
            version=2,
            tasks=[replace(STARTING, spec_version=2, waits_for="slot", waits_for_predecessor=True), RUNNING],
        ),
        Decision(Detail.WAITING_FOR_SLOT, finish=["running"]),
    ),
    "it waits for capacity": (
        replace(CALM, tasks=[replace(STARTING, waits_for="capacity")]),
        Decision(Detail.WAITING_FOR_CAPACITY),
    ),
    "Kafka does not let it read": (
        replace(CALM, tasks=[replace(RUNNING, ready=False, reading=False, refused=True)]),
        Decision(Detail.KAFKA_REFUSES),
    ),
    "another spec: Kafka does not let the new read, and the old reads on": (
        replace(
            CALM, version=2, tasks=[replace(RUNNING, id="new", spec_version=2, ready=False, refused=True), RUNNING]
        ),
        Decision(Detail.KAFKA_REFUSES),
    ),
    "others are in its consumer group": (
        replace(CALM, tasks=[replace(RUNNING, shared=True)]),
        Decision(Detail.STRANGERS_IN_GROUP),
    ),
    "Kafka lets it read again: it is well at once": (
        replace(CALM, tasks=[RUNNING], previous=Detail.KAFKA_REFUSES),
        Decision(Detail.RUNNING),
    ),
    "it has got a slot: it is well at once": (
        replace(CALM, tasks=[RUNNING], previous=Detail.WAITING_FOR_SLOT),
        Decision(Detail.RUNNING),
    ),
    "one replica has no slot, the other reads": (
        replace(CALM, replicas=2, tasks=[replace(STARTING, group="g", waits_for="slot"), replace(RUNNING, group="g")]),
        Decision(Detail.RUNNING),
    ),
    "another spec before the last one's task was up: that one ends, the one that reads goes on": (
        replace(CALM, version=3, tasks=[replace(STARTING, spec_version=2), RUNNING]),
        Decision(Detail.RUNNING, start=1, finish=["starting"]),
    ),
    "another spec whose task failed: the old reads on": (
        replace(CALM, version=2, tasks=[failed(0.5), RUNNING]),
        Decision(Detail.BACKING_OFF, failures=1, next_start_at=NOW + timedelta(seconds=0.5)),
    ),
    "it has read long enough: the next one starts": (
        replace(CALM, tasks=[replace(RUNNING, expired=True)]),
        Decision(Detail.RUNNING, start=1),
    ),
    "it has read long enough, and the next one waits: it finishes": (
        replace(CALM, tasks=[WAITING, replace(RUNNING, expired=True)]),
        Decision(Detail.RUNNING, finish=["running"]),
    ),
    "another spec that differs in the task count only: keep": (
        replace(CALM, version=2, task_count=3, tasks=[RUNNING], same_work_versions=frozenset({1})),
        Decision(Detail.RUNNING, scale={"running": 3}),
    ),
    "the old one still finishes while the new one reads": (
        replace(
            CALM, version=2, tasks=[replace(RUNNING, id="new", spec_version=2), replace(RUNNING, goal_is_run=False)]
        ),
        Decision(Detail.RUNNING),
    ),
    "two of the same: one finishes": (
        replace(CALM, tasks=[RUNNING, replace(RUNNING, id="second")]),
        Decision(Detail.RUNNING, finish=["second"]),
    ),
    "suspended: finish": (
        replace(CALM, suspended=True, tasks=[RUNNING]),
        Decision(Detail.STOPPING, finish=["running"]),
    ),
    "suspended and at rest": (replace(CALM, suspended=True), Decision(Detail.SUSPENDED)),
    "terminated and at rest": (replace(CALM, terminated=True), Decision(Detail.TERMINATED)),
    "idle: what reads publishes what it holds, and what starts is not waited for": (
        replace(CALM, idle=True, tasks=[STARTING, RUNNING]),
        Decision(Detail.IDLE, finish=["starting", "running"]),
    ),
    "idle, and its task ends": (
        replace(CALM, idle=True, tasks=[replace(RUNNING, goal_is_run=False)], previous=Detail.IDLE),
        Decision(Detail.IDLE),
    ),
    "idle and at rest": (
        replace(CALM, idle=True, tasks=[replace(failed(50), failed=False)], previous=Detail.IDLE),
        Decision(Detail.IDLE),
    ),
    "something came: a task starts": (
        replace(CALM, tasks=[replace(failed(50), failed=False)], previous=Detail.IDLE),
        Decision(Detail.RUNNING, start=1),
    ),
    "idle, but its task did not end well: what it held is to be read": (
        replace(CALM, idle=True, tasks=[failed(1.5)], previous=Detail.IDLE),
        Decision(Detail.RUNNING, start=1, failures=1),
    ),
    "nothing comes, but its spec has not begun to read yet": (
        replace(CALM, idle=True, version=2, in_force=1, last_good=LastGood(1, 1), tasks=[RUNNING]),
        Decision(Detail.RUNNING, start=1, in_force=1),
    ),
    "idle, and Kafka is lost": (
        replace(CALM, idle=True, runs=replace(LOST, failed=3), previous=Detail.IDLE),
        Decision(Detail.LOST_CONTACT_WITH_STREAM),
    ),
    "idle, and Kafka is back": (
        replace(CALM, idle=True, runs=Runs(good=3, connected=True), previous=Detail.LOST_CONTACT_WITH_STREAM),
        Decision(Detail.IDLE),
    ),
    "idle and suspended": (
        replace(CALM, idle=True, suspended=True, previous=Detail.IDLE),
        Decision(Detail.SUSPENDED),
    ),
    "idle, and its team has used up a quota": (
        replace(CALM, idle=True, over_quota=True, previous=Detail.IDLE),
        Decision(Detail.QUOTA_USED_UP),
    ),
    "one failure, too soon": (
        replace(CALM, tasks=[failed(0.5)]),
        Decision(Detail.BACKING_OFF, failures=1, next_start_at=NOW + timedelta(seconds=0.5)),
    ),
    "one failure, time is over": (
        replace(CALM, tasks=[failed(1.5)]),
        Decision(Detail.RUNNING, start=1, failures=1),
    ),
    "four failures in a row: 8 s, unhealthy": (
        replace(CALM, tasks=[failed(1), failed(20), failed(40), failed(60)]),
        Decision(Detail.UNHEALTHY_TASKS, failures=4, next_start_at=NOW + timedelta(seconds=7)),
    ),
    "failures in a row, and the next task reads, but not for long": (
        replace(CALM, tasks=[RUNNING, failed(10), failed(20), failed(40)]),
        Decision(Detail.UNHEALTHY_TASKS, failures=3),
    ),
    "failures in a row, and the next task has read for a minute": (
        replace(
            CALM,
            tasks=[replace(RUNNING, healthy=True), failed(100), failed(120), failed(140)],
            previous=Detail.UNHEALTHY_TASKS,
        ),
        Decision(Detail.RUNNING),
    ),
    "one good task is not enough where two are asked for": (
        replace(
            CALM,
            tasks=[replace(RUNNING, healthy=True), failed(100), failed(120), failed(140)],
            previous=Detail.UNHEALTHY_TASKS,
            thresholds=Thresholds(task_healthiness=2),
        ),
        Decision(Detail.UNHEALTHY_TASKS),
    ),
    "Kafka was never reached, for the third time": (
        replace(FRESH, runs=replace(UNREACHED, failed=3), previous=Detail.CONNECTING_TO_STREAM),
        Decision(Detail.UNABLE_TO_CONNECT_TO_STREAM),
    ),
    "Kafka is lost, but not for long": (replace(CALM, runs=LOST, tasks=[RUNNING]), Decision(Detail.RUNNING)),
    "Kafka is lost, for the third time: tasks are looked after": (
        replace(CALM, runs=replace(LOST, failed=3), tasks=[failed(1.5)]),
        Decision(Detail.LOST_CONTACT_WITH_STREAM, start=1, failures=1),
    ),
    "its iterations fail, and not because of Kafka": (
        replace(CALM, runs=Runs(failed=3, connected=True), tasks=[RUNNING]),
        Decision(Detail.UNHEALTHY_SUPERVISOR),
    ),
    "Kafka is back, but not for long enough": (
        replace(
            CALM,
            runs=Runs(good=2, connected=True),
            tasks=[RUNNING],
            previous=Detail.LOST_CONTACT_WITH_STREAM,
        ),
        Decision(Detail.LOST_CONTACT_WITH_STREAM),
    ),
    "Kafka is back": (
        replace(
            CALM,
            runs=Runs(good=3, connected=True),
            tasks=[RUNNING],
            previous=Detail.LOST_CONTACT_WITH_STREAM,
        ),
        Decision(Detail.RUNNING),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_decision(case: str) -> None:
    seen, expected = TABLE[case]
    assert decide(seen) == expected


def test_a_task_that_ran_well_restarts_the_count() -> None:
    assert failures_in_a_row([failed(1), failed(100, lived=3600), failed(8000)]) == 2


def test_a_success_ends_the_count() -> None:
    assert failures_in_a_row([failed(1), replace(failed(50), failed=False), failed(100)]) == 1


def test_what_has_published_was_no_failed_start() -> None:
    """Killed every half minute, each having stored something: the next one starts a second later, every time."""
    killed = [replace(failed(30 * n, lived=20), published=True) for n in range(1, 6)]
    assert failures_in_a_row(killed) == 5
    assert failed_starts(killed) == 1
    assert failed_starts([failed(1), failed(5), *killed]) == 3
    seen = replace(CALM, tasks=[replace(failed(1.5, lived=20), published=True), *killed])
    assert decide(seen).start == 1
    assert decide(seen).detailed_state.state == State.UNHEALTHY_TASKS


def test_back_off_grows_to_a_minute() -> None:
    assert [backoff_delay(n).total_seconds() for n in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]


SOON = NOW + timedelta(seconds=3)


@pytest.mark.parametrize(
    ("tasks", "until"),
    [
        ([RUNNING], NOW + CALM_FOR),
        ([WAITING], NOW + CALM_FOR),
        ([RUNNING, replace(failed(100), failed=False)], NOW + CALM_FOR),
        ([replace(RUNNING, expires_at=SOON)], SOON),
        ([replace(RUNNING, expires_at=NOW + timedelta(hours=1))], NOW + CALM_FOR),
        ([], None),
        ([STARTING], None),
        ([RUNNING, STARTING], None),
        ([RUNNING, failed(100)], None),
        ([replace(RUNNING, goal_is_run=False)], None),
        ([replace(RUNNING, spec_version=0)], None),
        ([replace(RUNNING, expired=True)], None),
        ([replace(RUNNING, indexers_wanted=1)], None),
    ],
)
def test_a_supervisor_is_calm_until_something_may_change(tasks: list[TaskSnapshot], until: datetime | None) -> None:
    seen = replace(CALM, tasks=tasks)
    assert calm_until(seen, decide(seen)) == until


@pytest.mark.parametrize(("tasks", "until"), [([RUNNING], None), ([], NOW + CALM_FOR)])
def test_an_idle_supervisor_is_calm_when_its_tasks_have_ended(
    tasks: list[TaskSnapshot], until: datetime | None
) -> None:
    seen = replace(CALM, idle=True, tasks=tasks)
    assert calm_until(seen, decide(seen)) == until


def test_a_supervisor_that_gets_well_is_not_calm() -> None:
    seen = replace(CALM, tasks=[RUNNING], runs=LOST, previous=Detail.LOST_CONTACT_WITH_STREAM)
    assert calm_until(seen, decide(seen)) is None
