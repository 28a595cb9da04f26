"""Applications that wait for a task, under Spark.

Only there it shows that a JVM and its workers live through the move of their folder.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.common.applications import process_in
from tests.acceptance import test_batch as batches
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.waiting_spares import waiting_spares

SERVED = "an application that waited serves the task"


@pytest.fixture(scope="module", autouse=True)
def _with_spares(house: House) -> Iterator[None]:
    """One application waits all the time."""
    with house.set_up_with(HEADGATE_SPARE_APPLICATIONS="1"):
        yield


def log_of(house: House, task: str) -> str:
    return (house.home.tasks / task / "spark.log").read_text()


def test_a_task_is_served_by_one_that_waited_and_by_a_new_one_when_that_was_killed(house: House) -> None:
    """Two tasks of one supervisor each, first with a spare, then with one that was killed just before the task came."""
    for kind in ("kafka", "share"):
        [spare] = wait_for("a spare waits", lambda: waiting_spares(house), 120)
        identity = process_in(spare)
        assert identity is not None
        topic = house.topic(f"spare-{kind}")
        house.produce(topic, numbered(0, 2_000))
        spec = house.kafka_spec(topic) if kind == "kafka" else house.spec(topic)
        supervisor = house.supervise(spec)
        published(house, topic, 2_000)
        task = house.running_task(topic)
        assert house.application_pid(task) == identity.pid
        assert SERVED in log_of(house, task)
        check_exactly_once(house, topic, range(2_000))
        house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
        house.rest()
        wait_for("its processes have ended", lambda i=identity: i.find() is None, 60)
    [spare] = wait_for("the next one waits", lambda: waiting_spares(house), 120)
    identity = process_in(spare)
    assert identity is not None
    os.killpg(identity.pid, signal.SIGKILL)
    topic = house.topic("spare-killed")
    house.produce(topic, numbered(0, 2_000))
    house.supervise(house.kafka_spec(topic))
    published(house, topic, 2_000)
    task = house.running_task(topic)
    assert house.application_pid(task) != identity.pid
    assert SERVED not in log_of(house, task)
    check_exactly_once(house, topic, range(2_000))


@pytest.mark.timeout(600)
def test_a_small_batch_begins_in_one_that_waited_and_again_as_its_spec_has_it(house: House, tmp_path: Path) -> None:
    """Its first Spark task kills itself, and a spare's Spark tries nothing twice. A replay has the next one."""
    name, killed = house.make_topic("spare-batch"), tmp_path / "killed"
    bad = batches.write_some_late(house, name, "0.csv", batches.table(1, 400))
    document = batches.spec(house, name)
    document["spec"]["tuningConfig"] = {"type": "index_parallel"}
    house.fail_at(f"{name}/batch", read=f"once:{killed}:kill")
    for post, rows in (
        (lambda: house.submit(document), 400 - len(bad)),
        (lambda: batches.replay(house, name), 400),
    ):
        wait_for("a spare waits", lambda: waiting_spares(house), 120)
        task = post()
        house.ended(task)
        assert SERVED in log_of(house, task)
        assert len(batches.stored(house, name)) == rows
        if rows < 400:
            assert killed.exists() and "Spark starts again" in log_of(house, task)
