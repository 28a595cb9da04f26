"""Applications that wait for a task, under Spark.

Only there it shows that a JVM and its workers live through the move of their folder.
"""

from __future__ import annotations

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


@pytest.mark.timeout(600)
def test_streams_small_batches_and_replays_begin_in_one_that_waited(house: House, tmp_path: Path) -> None:
    """The batch's first Spark task kills itself, and a spare's Spark tries nothing twice: Spark starts again as its
    spec has it. A replay has the next one."""
    [spare] = wait_for("a spare waits", lambda: waiting_spares(house), 120)
    identity = process_in(spare)
    assert identity is not None
    topic = house.topic("spare")
    house.produce(topic, numbered(0, 2_000))
    house.supervise(house.spec(topic))
    published(house, topic, 2_000)
    task = house.running_task(topic)
    assert house.application_pid(task) == identity.pid
    assert SERVED in log_of(house, task)
    check_exactly_once(house, topic, range(2_000))
    house.rest()
    wait_for("its processes have ended", lambda: identity.find() is None, 60)

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
