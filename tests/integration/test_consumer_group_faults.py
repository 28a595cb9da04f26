"""Consumer groups: members come, go, sleep and die; each record is stored once, by who holds its partition then."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from ingestion.client.memory import MemoryControlPlane
from ingestion.sources import consumer_group
from ingestion.sources.base import SourceProblem
from ingestion.sources.consumer_group import ConsumerGroupSource
from ingestion.sources.stored_offsets import StoredOffsets
from ingestion.sources.topic import TopicWatch
from ingestion.specs.messages.protocol import Assignment, ClaimRequest, StartRequest
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from ingestion.task.claims import Claims
from ingestion.task.control import Control
from ingestion.task.epoch import Epoch
from tests.support.broker import Broker
from tests.support.formats import HERE
from tests.support.house import House
from tests.support.invariants import always_whole, check_exactly_once, committed_in_kafka
from tests.support.records import Endless, numbered, published
from tests.support.storms import Stranger, pulse
from tests.support.waiting import wait_for
from tests.support.workers import Workers

STORM_S = 60.0
WINDOW_S = 10.0
Make = Callable[..., Workers]


def spec_for(broker: Broker, topic: str) -> dict[str, Any]:
    return broker.kafka_spec(topic, assignment="consumer_group")


def test_a_member_that_slept_publishes_late(house: House, make_workers: Make) -> None:
    """Row 23 of the failure matrix: it is refused by its generation, changes nothing, and takes part again."""
    topic = house.topic()
    # So that all of them are in one handoff: while one is refused, nothing more is read.
    spec = house.kafka_spec(topic, assignment="consumer_group", tuning={"intermediateHandoffPeriod": "PT5S"})
    workers = make_workers(spec, 2)
    workers.start(0)
    workers.wait_for_status(0, "it reads", state="reading")
    house.proxy.set("refuse")
    house.produce(topic, numbered(0, 4000))
    workers.wait_for_status(0, "it holds records that it can't publish", state="paused", in_flight=4000)
    with workers.asleep(0):
        house.proxy.await_silence()  # or the proxy passes on what it had sent last
        house.proxy.set("pass")
        workers.start(1)
        published(house, topic, 4000)
    workers.wait_for_status(0, "it hears that it came too late", in_flight=0)
    workers.wait_for_status(0, "it reads again", state="reading")
    records = 4000

    def both_publish() -> bool:
        nonlocal records
        house.produce(topic, numbered(records, records + 400))
        records += 400
        late = "SELECT 1 FROM publishing_indexerfence WHERE task_id = %s AND last_publish_at > now() - interval '3 s'"
        return len(house.sql(late, workers.id)) == 2

    wait_for("both publish", both_publish, 60, lambda: (workers.status(0), workers.status(1)))
    published(house, topic, records)
    totals = check_exactly_once(house, topic, range(records))
    assert totals["released"] >= 4000, "what it held is counted as given up"


def test_kafkas_own_offset_says_something_else(house: House, make_workers: Make) -> None:
    """Row 24 of the failure matrix: ahead, behind or gone, the stored offset counts. Handed off as it comes."""
    topic = house.topic(partitions=2)
    as_it_comes = {"intermediateHandoffPeriod": None}
    workers = make_workers(house.kafka_spec(topic, assignment="consumer_group", tuning=as_it_comes))
    group = workers.owner
    records = 0
    for change in (10_000, 0, None):
        workers.start(0)
        for partition in (0, 1):
            house.produce(topic, numbered(records, records + 500), partition=partition)
            records += 500
        published(house, topic, records)
        workers.finish(0)
        check_exactly_once(house, topic, range(records))
        assert sum(committed_in_kafka(house, group).values()) == records, "who watches the group there sees it"
        if change is None:
            house.admin.delete_consumer_groups([group])[group].result(30)
        else:
            places = [TopicPartition(topic, p, change) for p in (0, 1)]
            wanted = [ConsumerGroupTopicPartitions(group, places)]
            house.admin.alter_consumer_group_offsets(wanted)[group].result(30)
    workers.start(0)
    house.produce(topic, numbered(records, records + 1000))
    published(house, topic, records + 1000)
    check_exactly_once(house, topic, range(records + 1000))


def come_and_go(house: House, workers: Workers) -> Generator[None, None, None]:
    """From one to four members and back, one of them a stranger to the task, one killed; then from the beginning."""
    while True:
        for members in ((1,), (2, 3), (1, 2, 3)):
            workers.start(*members)
            for member in members:
                workers.wait_for_status(member, "it has joined", state="reading")
            yield
            workers.finish(*members)
            yield
        stranger = Stranger(house, workers.datasource, workers.owner)
        try:
            assert stranger.holds.wait(60), "the stranger was dealt nothing"
            yield
        finally:
            stranger.leave()
        workers.start(1)
        workers.wait_for_status(1, "another reads", state="reading")
        yield
        workers.kill(1)
        yield


def interrupted(house: House, topic: str) -> bool:
    """Whether a batch was given up so far. On a busy machine few changes fit into a minute."""
    return bool(house.totals(topic)["released"])


@pytest.mark.timeout(900)
def test_members_come_and_go_all_the_time(house: House, make_workers: Make) -> None:
    """Row 22 of the failure matrix: what members hold that come and go is given up, and read by others.

    Row 25 of the failure matrix: a storm of rebalances for a minute; something is published in each ten seconds of it.
    """
    topic = house.topic(partitions=6)
    workers = make_workers(spec_for(house, topic), 4)
    workers.start(0)
    stream = Endless(house, topic)
    at_least = published(house, topic, 1)
    changes = come_and_go(house, workers)
    began = time.monotonic()
    with always_whole(house, topic), pulse(house, topic, WINDOW_S) as windows:
        while time.monotonic() - began < STORM_S or len(windows) < STORM_S // WINDOW_S or not interrupted(house, topic):
            next(changes)
            at_least = published(house, topic, at_least + 1, 40)
    changes.close()
    assert all(windows), f"rows in each {WINDOW_S:.0f} s: {windows}"
    records = stream.finish()
    published(house, topic, records)
    check_exactly_once(house, topic, range(records))
    assert interrupted(house, topic)


def test_what_stays_with_a_member_goes_on(house: House, make_workers: Make) -> None:
    """Row 22 of the failure matrix: what went to another member is dropped, exactly, and nothing of the rest.

    With an hour between handoffs, all is still in hand when the second member joins.
    """
    topic = house.topic(partitions=2)
    sizes = {0: 1000, 1: 400}
    house.produce(topic, numbered(0, 1000), partition=0)
    house.produce(topic, numbered(1000, 1400), partition=1)
    hourly = {"intermediateHandoffPeriod": "PT1H"}
    workers = make_workers(house.kafka_spec(topic, assignment="consumer_group", tuning=hourly), 2)
    workers.start(0)
    workers.wait_for_status(0, "all is in its hands", in_flight=1400)
    workers.start(1)
    first = wait_for(
        "one partition went to the other",
        lambda: (status := workers.status(0)) and (status if status.unpublished.released else None),
        60,
        lambda: (workers.status(0), workers.status(1)),
    )
    lost = next(p for p, size in sizes.items() if size == first.unpublished.released)
    kept = sizes[1 - lost]
    assert first.in_flight == kept, "the other partition's work goes on"
    workers.wait_for_status(1, "the other reads what was given up", in_flight=sizes[lost])
    status = workers.status(0)
    assert status is not None
    assert (status.in_flight, status.unpublished.released) == (kept, sizes[lost])
    workers.finish(0, 1)
    totals = check_exactly_once(house, topic, range(1400))
    assert (totals["released"], totals["polled"]) == (sizes[lost], 1400 + sizes[lost])


def test_a_claim_that_comes_late_takes_no_partition_for_good(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 22 of the failure matrix: a member's claim lands after the partition went on to another, who reads on.

    The two ends of it are driven by hand: the claim as a message to a control plane, the other member's source.
    """
    monkeypatch.setattr(consumer_group, "RECLAIM_S", 0.5)
    topic = broker.topic(partitions=1)
    broker.produce(topic, numbered(0, 100))
    source, plane, claims = member(broker, topic)
    source.open()
    try:
        first = wait_for("records", lambda: source.poll(0.2), 30)
        assert first.progress[0].generation == 1
        late = ClaimRequest(epoch=1, topic_id=claims.topic_id, partitions=[0], new_generation=True)
        assert plane.claim(0, late).partitions[0].generation == 2
        source.rewind({0})  # as after a publish that was refused
        again = wait_for("the records again", lambda: source.poll(0.2), 30)
        assert again.progress[0].generation == 3
        assert (again.progress[0].start, again.progress[0].end) == (0, 100)
    finally:
        source.close()


def test_a_member_ends_while_kafka_does_not_answer(broker: Broker) -> None:
    """Row 14 of the failure matrix: a commit to Kafka that nobody answers keeps no task from ending."""
    topic = broker.topic(partitions=1)
    broker.produce(topic, numbered(0, 100))
    source, _, _ = member(broker, topic)
    source.open()
    wait_for("records", lambda: source.poll(0.2), 30)
    broker.kafka.pause()
    try:
        source.published({0: 100})
        with pytest.raises(SourceProblem, match="has not closed"):
            source.close()
    finally:
        broker.kafka.resume()

    def closed() -> bool:
        try:
            source.close()
        except SourceProblem:
            return False
        return True

    wait_for("it closes when Kafka answers", closed, 60)


def member(broker: Broker, topic: str) -> tuple[ConsumerGroupSource, MemoryControlPlane, Claims]:
    spec = parse_task_spec({**spec_for(broker, topic), "type": "index_kafka"}).spec
    properties = {"bootstrap.servers": broker.bootstrap}
    given = Assignment(
        task_id="t",
        kind="consumer_group",
        spec=spec,
        consumer_properties=properties,
        indexers=1,
        deep_storage="",
        version="v",
        created_at=datetime(2025, 6, 1, tzinfo=UTC),
    )
    plane, watch = MemoryControlPlane(given), TopicWatch(properties, topic, HERE)
    identity = watch.identity()
    assert identity is not None
    asked = StartRequest(cluster_id=identity.cluster_id, topic_id=identity.topic_id, host="", pid=1)
    claims = Claims(plane, Control(0, 1), Epoch(0, plane.start(0, asked).epoch, identity.topic_id))
    stored = StoredOffsets(topic, watch, claims, use_earliest=True, may_reset=False, with_generation=True)
    return ConsumerGroupSource(properties, stored, f"group-{topic}", "member", 0.1), plane, claims
