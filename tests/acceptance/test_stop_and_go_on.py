"""The stack is stopped while it ingests, and started again: all applications end in order, and ingestion goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from controlplane.common.applications import record_process, was_stopped
from controlplane.embedded import apps
from controlplane.embedded.processes import Child
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.records import Endless, published
from tests.support.services import start_all
from tests.support.waiting import wait_for

IDLE = {"inactiveAfterMillis": 5000}
BY_HAND = "consumer_group"


def tasks_of(house: House, datasource: str) -> list[tuple[Any, ...]]:
    """Status, error and message of each, the newest first; repairs aside."""
    return house.sql(
        "SELECT t.status, t.error, t.message FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id"
        " WHERE d.name = %s AND t.kind <> 'repair' ORDER BY t.created_at DESC",
        datasource,
    )


@contextmanager
def stopped_as_by_the_launcher(house: House) -> Iterator[None]:
    """All but the servers, which keep their data; afterwards all is started again."""
    house.beat.stop()
    house.worker.stop()
    try:
        house.stop_applications()
        yield
    finally:
        start_all(house.worker, house.beat)


@pytest.mark.timeout(900)
def test_nothing_is_red_lost_or_doubled(house: House) -> None:
    """A supervisor of a share group and a task by hand of a consumer group: neither fails, each record is stored once.

    Under Spark, whose applications are told to end by a signal.
    """
    share, hand = (house.topic(lane.replace("_", "-")) for lane in ("share_group", BY_HAND))
    house.supervise(lane_spec(house, "share_group", share, startDelay="PT0S"))
    task = house.submit({**lane_spec(house, BY_HAND, hand, idleConfig=IDLE), "type": "index_kafka"})
    topics = [share, hand]
    streams = {topic: Endless(house, topic) for topic in topics}
    for topic in topics:
        published(house, topic, 500, 180)
    with stopped_as_by_the_launcher(house):
        [(status, error, message)] = tasks_of(house, share)
        assert (status, error) == ("SUCCESS", ""), house.logs(share)
        assert message.startswith("The stack or its machine was shut down, and the task stopped cleanly.")
        [(status, error, message)] = tasks_of(house, hand)
        assert (status, error) == ("PENDING", ""), house.logs(hand)
        assert message.endswith("It continues automatically.")
        stored = {topic: house.totals(topic)["published"] for topic in topics}
    for topic in topics:
        published(house, topic, stored[topic] + 500, 180)
    records = {topic: stream.finish() for topic, stream in streams.items()}
    for topic in topics:
        published(house, topic, records[topic])
        check_exactly_once(house, topic, range(records[topic]))
        assert "FAILED" not in [status for status, *_ in tasks_of(house, topic)]
    wait_for("the task by hand ends", lambda: house.status(task) == "SUCCESS", 90, lambda: house.logs(hand))
    assert len(tasks_of(house, hand)) == 1


def test_a_worker_that_nothing_outlives_takes_them_with_it(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in a container does: HEADGATE_WORKER_STOPS_TASKS. It shares no folder with the house's worker."""
    monkeypatch.setenv("HEADGATE_HOST_NAME", "alone")
    child = Child([sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "log")
    folder = tmp_path / "tasks" / "task"
    folder.mkdir(parents=True)
    record_process(folder, child.pid)
    settings = {
        "HEADGATE_WORKER_STOPS_TASKS": "1",
        "HEADGATE_TASK_DIR": str(folder.parent),
        "HEADGATE_HOST_NAME": "alone",
    }
    try:
        with apps.Worker(house.home, {**house.environment, **settings}, concurrency=1, name="alone"):
            assert child.running
        assert not child.running
        assert was_stopped(folder)
    finally:
        child.kill()
