"""Observations of a supervisor that tables of its decisions begin with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from controlplane.supervisors.decide import Observation, Runs, TaskSnapshot
from controlplane.supervisors.states import Detail

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
CALM = Observation(
    now=NOW,
    suspended=False,
    terminated=False,
    version=1,
    task_count=2,
    tasks=[],
    runs=Runs(good=9, connected=True),
    previous=Detail.RUNNING,
    steady=True,
)
RUNNING = TaskSnapshot(
    id="running",
    spec_version=1,
    active=True,
    reading=True,
    ready=True,
    failed=False,
    goal_is_run=True,
    indexers_wanted=2,
    created_at=NOW - timedelta(minutes=5),
)

STARTING = replace(RUNNING, id="starting", reading=False, ready=False)
WAITING = replace(STARTING, id="waiting", ready=True)
FRESH = replace(CALM, runs=Runs(), previous=Detail.PENDING, steady=False)
REACHED = replace(FRESH, runs=Runs(good=1, connected=True))
UNREACHED = Runs(failed=1, stream_failed=True)
LOST = Runs(failed=1, stream_failed=True, connected=True)


def failed(seconds_ago: float, lived: float = 5) -> TaskSnapshot:
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
