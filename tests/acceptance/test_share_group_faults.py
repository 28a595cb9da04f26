"""Records with known sums, with no fault and with every fault: nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import Endless, Stream, numbered, published, published_rows
from tests.support.services import restart_all
from tests.support.waiting import wait_for
from tests.support.workers import Workers

RECORDS = 20_000


def test_a_worker_is_killed_while_it_holds_records(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 1 of the failure matrix, for share groups: SIGKILL of an indexer's Python worker."""
    topic = house.topic()
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, decoded=f"once:{held}:hold")
    workers = make_workers(house.spec(topic, taskCount=2), 2)
    workers.start(0, 1)
    stream = Stream(house, topic, RECORDS)
    wait_for("an indexer holds records", held.exists, 60, lambda: house.logs(topic))
    pid = wait_for("it has said which one it is", lambda: int(held.read_text() or 0), 10)
    assert pid in [workers.pid(number) for number in workers.numbers]
    os.kill(pid, signal.SIGKILL)
    stream.finish()
    published(house, topic, RECORDS)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert totals["redelivered"] > 0


def test_the_application_is_killed_between_publish_and_acknowledge(
    house: House, make_workers: Callable[..., Workers]
) -> None:
    """Row 15 of the failure matrix: what was published is delivered again, and dropped.

    Row 2 of the failure matrix, for share groups.
    """
    topic = house.topic()
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, before_ack=f"once:{held}:hold")
    killed, next_one = (make_workers(house.spec(topic)) for _ in range(2))
    killed.start(0)
    stream = Stream(house, topic, RECORDS)
    wait_for("a batch is published and not acknowledged", held.exists, 60, lambda: house.logs(topic))
    killed.give_way()
    next_one.start(0)
    stream.finish()
    published(house, topic, RECORDS)
    wait_for("what was published is delivered again", lambda: house.totals(topic)["duplicates"] > 0, 60)
    totals = check_exactly_once(house, topic, range(RECORDS))
    assert totals["redelivered"] >= totals["duplicates"]


def test_publishes_fail_for_a_while(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 3 of the failure matrix: answers of 500, then those lost after the commit, are asked for again by publish id.

    Between the two all indexers go on.
    """
    topic = house.topic()
    make_workers(house.spec(topic, taskCount=2), 2).start(0, 1)
    stream = Endless(house, topic)

    def paused() -> list[tuple[Any, ...]]:
        return house.sql(
            "SELECT i.message FROM tasks_indexer i JOIN tasks_task t ON t.id = i.task_id"
            " JOIN datasources_datasource d ON d.id = t.datasource_id WHERE d.name = %s AND i.state = 'paused'",
            topic,
        )

    for fault in ("refuse", "lose_answer"):
        published(house, topic, published_rows(house, topic) + 1_000)
        house.proxy.set(fault)
        wait_for("publishes meet the fault", lambda: house.proxy.hits >= 3, 60, lambda: house.logs(topic))
        messages = wait_for("an indexer pauses and says why", paused, 60)
        assert "control plane does not answer" in messages[0][0]
        house.proxy.set("pass")
        wait_for("no indexer pauses", lambda: not paused(), 60, paused)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))


def test_publishes_fail_for_longer_than_the_lock(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 3 of the failure matrix: the batch is given up; whether it had committed is found out by its publish id."""
    topic = house.topic()
    make_workers(house.spec(topic, taskCount=1, lock_ms=2000, delivery_limit=10)).start(0)
    stream = Stream(house, topic, RECORDS)
    published(house, topic, 5_000)
    house.proxy.set("lose_answer")
    began = time.monotonic()
    wait_for("the lock has run out twice over", lambda: time.monotonic() - began > 5, 30)
    house.proxy.set("pass")
    stream.finish()
    published(house, topic, RECORDS)
    check_exactly_once(house, topic, range(RECORDS))


def test_two_tasks_in_one_group(house: House, make_workers: Callable[..., Workers]) -> None:
    """Two tasks submitted by hand, one share group, one datasource; both end by themselves."""
    topic = house.topic()
    idle = {"inactiveAfterMillis": 8000}
    tasks = [make_workers(house.spec(topic, taskCount=1, idleConfig=idle), owner=None) for _ in range(2)]
    for task in tasks:
        task.start(0)
    records = 0

    def both_have_published() -> bool:
        """The stream goes on until both have some: one that reads first must not end as idle before the other does."""
        nonlocal records
        house.produce(topic, numbered(records, records + 500))
        records += 500
        shares = house.sql("SELECT DISTINCT task_id FROM publishing_indexerfence WHERE published > 0")
        return {task for (task,) in shares} >= {task.id for task in tasks}

    wait_for("both tasks publish", both_have_published, 150, lambda: house.logs(topic))
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    assert [task.ended(0) for task in tasks] == [("ended", "")] * 2


@pytest.mark.timeout(900)
def test_a_crash_loop_uses_up_the_deliveries(house: House, make_workers: Callable[..., Workers]) -> None:
    """Row 18 of the failure matrix: one crash more than there are deliveries.

    Records run out of deliveries, the broker archives them, the repair job finds them.
    """
    topic = house.topic(partitions=1)
    records = 2_000
    limit = 2
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, decoded=f"hold:{held}")
    workers = make_workers(house.spec(topic, taskCount=1, lock_ms=2000, delivery_limit=limit, consumersPerIndexer=1))
    house.produce(topic, numbered(0, records))
    for crash in range(limit + 1):
        workers.start(0)
        wait_for(f"records are held (crash {crash + 1})", held.exists, 120, lambda: workers.status(0))
        if crash == limit:
            house.fail_at(topic)
        held.unlink()
        workers.kill(0)
        if crash == limit - 1:
            # What was held so far is archived by now; the next one holds what comes later.
            house.produce(topic, numbered(records, 2 * records))
    workers.start(0)
    published(house, topic, 2 * records, 180)
    totals = check_exactly_once(house, topic, range(2 * records))
    assert totals["published"] == 2 * records
    repaired = house.sql(
        "SELECT sum(f.published) FROM publishing_indexerfence f JOIN tasks_task t ON t.id = f.task_id"
        " JOIN datasources_datasource d ON d.id = t.datasource_id WHERE d.name = %s AND t.kind = 'repair'",
        topic,
    )
    assert repaired[0][0] and repaired[0][0] > 0

    def told() -> bool:
        events = house.api("GET", f"/api/v1/datasources/{topic}/events/")["results"]
        return any(e["kind"] == "repaired" and e["alarm"] for e in events)

    wait_for("the repair ends and raises an alarm", told, 60)


@pytest.mark.timeout(900)
def test_an_application_goes_on_after_sleep_and_restarts(house: House) -> None:
    """Row 16 of the failure matrix: asleep for longer than the lock; what it publishes late is stored once.

    Row 17 of the failure matrix: its late acknowledgements are refused by the broker, and it goes on all the same. It
    is alone: brokers pass over late ones in silence where another has accepted the records meanwhile.
    Row 7 of the failure matrix: the control plane is killed and comes back; running applications are found again.
    Row 14 of the failure matrix, for share groups: Kafka is killed and comes back under the same application.
    Under Spark, whose driver speaks for a sleeping indexer, and whose applications outlive the control plane.
    """
    topic = house.topic()
    held = house.home.path / f"{topic}.held"
    house.fail_at(topic, uploaded=f"pause:{held}")
    house.supervise(house.spec(topic, lock_ms=2000))
    task = house.running_task(topic)
    records = _sleeps_past_its_lock(house, topic, task, held)
    stream = Endless(house, topic, records)
    published(house, topic, records + 1_000)
    for app in (house.beat, house.worker, house.web):
        app.kill()
    restart_all(house.web, house.worker, house.beat)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    assert house.running_task(topic) == task
    house.kafka.kill()
    house.kafka.restart()
    house.produce(topic, numbered(records, records + RECORDS))
    published(house, topic, records + RECORDS, 180)
    totals = check_exactly_once(house, topic, range(records + RECORDS))
    assert totals["unparseable"] == totals["thrown_away"] == totals["quarantined"] == 0
    assert house.running_task(topic) == task


def _sleeps_past_its_lock(house: House, topic: str, task: str, held: Path) -> int:
    """The records so far."""
    stream = Endless(house, topic)
    wait_for("it holds records", held.exists, 60, lambda: house.logs(topic))
    pid = wait_for("it has said which one it is", lambda: int(held.read_text() or 0), 10)

    def shows(state: str) -> list[Any]:
        return house.sql("SELECT 1 FROM tasks_indexer WHERE task_id = %s AND state = %s", task, state)

    os.kill(pid, signal.SIGSTOP)
    try:
        held.unlink()
        wait_for("the control plane notices the silence", lambda: shows("silent"), 40)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for("it is heard again", lambda: shows("reading"), 40)

    def refused() -> bool:
        rows = house.sql("SELECT ack_failures FROM tasks_indexer WHERE task_id = %s", task)
        return int(rows[0][0]) > 0

    wait_for("its late acknowledgements are refused", refused, 30)
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    assert psutil.pid_exists(pid)

    def expired() -> bool:
        [[told]] = house.sql("SELECT leases FROM tasks_indexer WHERE task_id = %s", task)
        ends = ("accepted", "rejected", "released", "lock_expired")
        assert told["acquired"] == sum(told[end] for end in ends)
        return bool(told["lock_expired"])

    wait_for("what was refused counts as expired", expired, 30)
    return records
