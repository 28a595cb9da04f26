"""Decisions while the newest version of a spec does not start, and the last good one reads on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.supervisors.decide import Decision, LastGood, Observation, TaskSnapshot, decide
from controlplane.supervisors.states import Detail
from tests.support.decisions import CALM, LOST, NOW, RUNNING, STARTING, UNREACHED, WAITING, failed

CHANGED = replace(CALM, version=2, in_force=1, last_good=LastGood(version=1, replicas=1))
GOOD = replace(RUNNING, has_begun_reading=True)
DIED = replace(failed(1.5), has_begun_reading=True, published=True)
REFUSED = replace(STARTING, id="refused", spec_version=2, refused=True)


def second_failed(seconds_ago: float) -> TaskSnapshot:
    return replace(failed(seconds_ago), id=f"second-{seconds_ago}", spec_version=2)


LAST_GOOD: dict[str, tuple[Observation, Decision]] = {
    "a version's first task begins: it is in force": (
        replace(CALM, tasks=[GOOD]),
        Decision(Detail.RUNNING, in_force=1),
    ),
    "the next begins: it is in force, and never goes back": (
        replace(CHANGED, tasks=[replace(second_failed(0.5), has_begun_reading=True), DIED]),
        Decision(Detail.BACKING_OFF, failures=2, next_start_at=NOW + timedelta(seconds=1.5), in_force=2),
    ),
    "a version that differs in the task count only is the one that reads": (
        replace(CALM, version=2, in_force=1, tasks=[GOOD], same_work_versions=frozenset({1})),
        Decision(Detail.RUNNING, in_force=2),
    ),
    "the last good one dies while the next is on its way: nothing goes back": (
        replace(CHANGED, tasks=[replace(STARTING, spec_version=2), DIED]),
        Decision(Detail.RUNNING, in_force=1),
    ),
    "the next fails, and the last good one reads on": (
        replace(CHANGED, tasks=[second_failed(0.5), GOOD]),
        Decision(Detail.BACKING_OFF, failures=1, next_start_at=NOW + timedelta(seconds=0.5), in_force=1),
    ),
    "the next fails, and the last good one dies: it is started again": (
        replace(CHANGED, tasks=[second_failed(0.5), DIED]),
        Decision(Detail.BACKING_OFF, restart=1, failures=1, next_start_at=NOW + timedelta(seconds=0.5), in_force=1),
    ),
    "the last good one has died a moment ago": (
        replace(CHANGED, tasks=[second_failed(1.5), replace(DIED, ended_at=NOW - timedelta(seconds=0.5))]),
        Decision(Detail.RUNNING, start=1, failures=1, in_force=1),
    ),
    "it is on its way, beside another try of the next": (
        replace(
            CHANGED, tasks=[replace(STARTING, id="again"), replace(STARTING, spec_version=2), second_failed(9), DIED]
        ),
        Decision(Detail.RUNNING, failures=1, in_force=1),
    ),
    "it reads again and is well, which says nothing of the next": (
        replace(
            CHANGED,
            tasks=[replace(GOOD, healthy=True), second_failed(1), second_failed(20), second_failed(40), DIED],
            previous=Detail.UNHEALTHY_TASKS,
        ),
        Decision(Detail.UNHEALTHY_TASKS, failures=3, next_start_at=NOW + timedelta(seconds=3), in_force=1),
    ),
    "the next waits until it ends: it hands over": (
        replace(CHANGED, tasks=[replace(WAITING, spec_version=2), second_failed(20), GOOD]),
        Decision(Detail.RUNNING, finish=["running"], failures=1, in_force=1),
    ),
    "the next finds no topic, and the last good one dies: it is started again": (
        replace(CHANGED, runs=LOST, tasks=[replace(STARTING, spec_version=2), DIED]),
        Decision(Detail.RUNNING, restart=1, in_force=1),
    ),
    "Kafka was never reached for the next, and the last good one dies: it is started again": (
        replace(CHANGED, runs=UNREACHED, steady=False, tasks=[DIED]),
        Decision(Detail.CONNECTING_TO_STREAM, restart=1, in_force=1),
    ),
    "Kafka refuses the next before it begins, and the last good one reads on": (
        replace(CHANGED, tasks=[REFUSED, GOOD]),
        Decision(Detail.KAFKA_REFUSES, in_force=1),
    ),
    "Kafka refuses the next before it begins, and the last good one dies: it is started again": (
        replace(CHANGED, tasks=[REFUSED, DIED]),
        Decision(Detail.KAFKA_REFUSES, restart=1, in_force=1),
    ),
    "Kafka refuses the next but one, too: the one between ends, and the last good one reads on": (
        replace(CHANGED, version=3, tasks=[replace(REFUSED, id="third", spec_version=3), REFUSED, GOOD]),
        Decision(Detail.KAFKA_REFUSES, finish=["refused"], in_force=1),
    ),
    "so it does while it is on its way": (
        replace(CHANGED, version=3, tasks=[replace(REFUSED, id="third", spec_version=3), REFUSED, STARTING, DIED]),
        Decision(Detail.KAFKA_REFUSES, finish=["refused"], in_force=1),
    ),
    "it pauses, and so reads nothing: it is not ended": (
        replace(CHANGED, tasks=[second_failed(0.5), replace(GOOD, reading=False, ready=False)]),
        Decision(Detail.BACKING_OFF, failures=1, next_start_at=NOW + timedelta(seconds=0.5), in_force=1),
    ),
    "one of its replicas died: another joins its group": (
        replace(
            CHANGED,
            last_good=LastGood(version=1, replicas=2),
            tasks=[second_failed(0.5), replace(DIED, group="g"), replace(GOOD, group="g")],
        ),
        Decision(
            Detail.BACKING_OFF,
            restart=1,
            restart_group="g",
            failures=1,
            next_start_at=NOW + timedelta(seconds=0.5),
            in_force=1,
        ),
    ),
}


@pytest.mark.parametrize("case", LAST_GOOD)
def test_decision_while_a_version_does_not_start(case: str) -> None:
    seen, expected = LAST_GOOD[case]
    assert decide(seen) == expected
