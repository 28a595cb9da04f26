"""Decisions of a supervisor with replicas: which of two readers of the same offsets stay, start and end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.supervisors.decide import Decision, Observation, decide
from controlplane.supervisors.states import Detail
from tests.support.decisions import CALM, NOW, RUNNING, STARTING, failed

PAIR = [replace(RUNNING, id="a", group="g"), replace(RUNNING, id="b", group="g")]
TWO = replace(CALM, replicas=2)
NEXT = [replace(STARTING, id="c", group="h"), replace(STARTING, id="d", group="h")]

REPLICAS: dict[str, tuple[Observation, Decision]] = {
    "nothing runs: all start": (TWO, Decision(Detail.RUNNING, start=2)),
    "all run: nothing to do": (replace(TWO, tasks=PAIR), Decision(Detail.RUNNING)),
    "one died: another joins its group after the back-off": (
        replace(TWO, tasks=[failed(1.5), PAIR[0]]),
        Decision(Detail.RUNNING, start=1, group="g", failures=1),
    ),
    "one died a moment ago": (
        replace(TWO, tasks=[failed(0.5), PAIR[0]]),
        Decision(Detail.BACKING_OFF, failures=1, next_start_at=NOW + timedelta(seconds=0.5)),
    ),
    "one of two fails again and again, while the other reads well": (
        replace(TWO, tasks=[failed(1), failed(20), failed(40), replace(PAIR[0], healthy=True), failed(999)]),
        Decision(Detail.UNHEALTHY_TASKS, failures=3, next_start_at=NOW + timedelta(seconds=3)),
    ),
    "one too many: one that is not up yet finishes": (
        replace(CALM, tasks=[replace(PAIR[0], ready=False, reading=False), PAIR[1]]),
        Decision(Detail.RUNNING, finish=["a"]),
    ),
    "they have read long enough: a new group starts": (
        replace(TWO, tasks=[replace(t, expired=True) for t in PAIR]),
        Decision(Detail.RUNNING, start=2),
    ),
    "the next group is starting: the old one reads on": (
        replace(TWO, tasks=[*NEXT, *(replace(t, expired=True) for t in PAIR)]),
        Decision(Detail.RUNNING),
    ),
    "one of the next group waits: all of the old one finish": (
        replace(TWO, tasks=[NEXT[0], replace(NEXT[1], ready=True), *(replace(t, expired=True) for t in PAIR)]),
        Decision(Detail.RUNNING, finish=["a", "b"]),
    ),
    "another spec with fewer replicas: a new group": (
        replace(CALM, version=2, tasks=PAIR),
        Decision(Detail.RUNNING, start=1),
    ),
    "suspended: all finish": (
        replace(TWO, suspended=True, tasks=PAIR),
        Decision(Detail.STOPPING, finish=["a", "b"]),
    ),
}


@pytest.mark.parametrize("case", REPLICAS)
def test_decision_with_replicas(case: str) -> None:
    seen, expected = REPLICAS[case]
    assert decide(seen) == expected
