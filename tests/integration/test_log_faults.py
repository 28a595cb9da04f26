"""What Kafka's log may hold or hold no more, read with stored offsets: by number and through a consumer group."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic, OffsetSpec

from ingestion.specs import offsets
from tests.support.house import House
from tests.support.invariants import check_exactly_once, receipts_of, stored_numbers
from tests.support.lanes import LANES, WITH_STORED_OFFSETS, lane_spec
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

Make = Callable[..., Workers]


def delete_before(house: House, topic: str, partition: int, offset: int) -> None:
    """What retention does."""
    for future in house.admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        future.result(30)


@pytest.mark.parametrize(("lane", "earliest"), [("offset_range", True), ("consumer_group", False)])
def test_retention_has_passed_the_stored_offset(house: House, make_workers: Make, lane: str, earliest: bool) -> None:
    """Row 9 of the failure matrix: it ends and names what is lost; when the spec allows, it goes on, records it, and
    says so in its report.
    """
    topic = house.topic(partitions=2)
    house.produce(topic, numbered(0, 2000), partition=0)
    house.produce(topic, numbered(2000, 3000), partition=1)
    spec = house.kafka_spec(topic, assignment=lane)
    workers = make_workers(spec)
    workers.start(0)
    published(house, topic, 3000)
    workers.finish(0)
    house.produce(topic, numbered(3000, 4000), partition=0)
    delete_before(house, topic, 0, 2500)
    workers.start(0)
    how, why = workers.ended(0)
    assert how == "OffsetsUnavailable"
    assert "partition 0" in why
    assert "offsets 2000 to 2499" in why
    assert "resetOffsetAutomatically" in why
    check_exactly_once(house, topic, range(3000))
    workers.close()
    spec["tuningConfig"]["resetOffsetAutomatically"] = True
    spec["ioConfig"]["useEarliestOffset"] = earliest
    after = make_workers(spec, owner=workers.owner)
    after.start(0)
    kinds = ["gap"] if earliest else ["offset_reset", "gap"]
    wait_for("what is left out is recorded", lambda: [e["kind"] for e in events(house, topic)] == kinds, 60)
    house.produce(topic, numbered(4000, 4500), partition=0)
    expected = {*range(3000), *range(4000, 4500), *(range(3500, 4000) if earliest else ())}
    published(house, topic, len(expected))
    check_exactly_once(house, topic, expected)
    assert receipts_of(house, topic, 0).get("gap") == [(2000, 2500)]
    assert receipts_of(house, topic, 0).get("skipped") == (None if earliest else [(2500, 3000)])
    assert all(e["alarm"] for e in events(house, topic))
    told = house.api("GET", f"/api/v1/tasks/{after.id}/report/")["events"]
    assert sorted(e["kind"] for e in told) == sorted(kinds)
    assert any("Retention removed offsets 2000 to 2499" in e["detail"] for e in told)


def events(house: House, datasource: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = house.api("GET", f"/api/v1/datasources/{datasource}/events/")["results"]
    return found


def test_retention_passes_a_running_indexer(house: House, make_workers: Make) -> None:
    """Row 9 of the failure matrix: what it has not fetched by then is a gap, to the record."""
    topic = house.topic(partitions=1)
    spec = house.kafka_spec(topic, tuning={"resetOffsetAutomatically": True})
    workers = make_workers(spec)
    workers.start(0)
    house.produce(topic, numbered(0, 1000))
    published(house, topic, 1000)
    with workers.asleep(0):
        house.produce(topic, numbered(1000, 40_000))
        delete_before(house, topic, 0, 30_000)
    wait_for("the gap is recorded", lambda: events(house, topic), 60, lambda: workers.status(0))
    house.produce(topic, numbered(40_000, 41_000))
    wait_for("all is read", lambda: receipts_end(house, topic) == 41_000, 60, lambda: workers.status(0))
    ((start, end),) = receipts_of(house, topic, 0)["gap"]
    assert end == 30_000
    check_exactly_once(house, topic, {*range(41_000)} - {*range(start, end)})


def receipts_end(house: House, topic: str) -> int:
    return max(end for ranges in receipts_of(house, topic, 0).values() for _, end in ranges)


@pytest.mark.parametrize(
    ("lane", "records", "reset"),
    [("offset_range", 1000, True), ("offset_range", 6000, False), ("consumer_group", 1000, False)],
)
def test_a_topic_is_made_again(house: House, make_workers: Make, lane: str, records: int, reset: bool) -> None:
    """Row 10 of the failure matrix: told by its id, be its new end smaller or larger; nothing is skipped or reset."""
    topic = house.topic(partitions=1)
    house.produce(topic, numbered(0, 3000))
    workers = make_workers(house.kafka_spec(topic, assignment=lane, tuning={"resetOffsetAutomatically": reset}))
    workers.start(0)
    published(house, topic, 3000)
    with workers.asleep(0):
        house.admin.delete_topics([topic])[topic].result(30)
        wait_for("the topic is gone", lambda: topic not in house.admin.list_topics(timeout=10).topics, 30)
        house.make_topic(topic, 1)
        house.produce(topic, numbered(3000, 3000 + records))
    published(house, topic, 3000 + records)
    check_exactly_once(house, topic, range(3000 + records))
    assert [e["kind"] for e in events(house, topic)] == ["topic_recreated"]


def test_partitions_are_added(house: House, make_workers: Make) -> None:
    """Row 11 of the failure matrix: the new ones are read from their first record; with stored offsets whatever
    useEarliestOffset says.
    """
    topics = {lane: house.topic(partitions=1) for lane in LANES}
    for lane, topic in topics.items():
        house.produce(topic, numbered(0, 100))
        make_workers(lane_spec(house, lane, topic, useEarliestOffset=lane == "share_group"), 2).start(0, 1)
    stored = "SELECT 1 FROM publishing_progresskey k JOIN sources_source s ON s.id = k.source_id"
    for lane, topic in topics.items():
        if lane == "share_group":
            published(house, topic, 100)
        else:
            wait_for(
                "the topic's end is where it starts",
                lambda topic=topic: house.sql(f"{stored} WHERE s.topic = %s AND k.next_offset = 100", topic),
                60,
                lambda topic=topic: house.sql("SELECT * FROM publishing_progresskey"),
            )
        house.admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
        wait_for(
            "the producer knows them",
            lambda topic=topic: len(house.producer.list_topics(topic).topics[topic].partitions) == 4,
        )
        for partition in (1, 2, 3):
            house.produce(topic, numbered(partition * 1000, partition * 1000 + 1000), partition=partition)
    for lane, topic in topics.items():
        first = range(100) if lane == "share_group" else range(0)
        published(house, topic, 3000 + len(first))
        check_exactly_once(house, topic, [*first, *range(1000, 4000)])


def transactional(house: House, topic: str) -> Producer:
    config = {"transactional.id": f"tx-{topic}", "transaction.timeout.ms": 600_000, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": house.bootstrap, **config})
    producer.init_transactions(30)
    return producer


def send(producer: Producer, topic: str, first: int, last: int) -> None:
    producer.begin_transaction()
    for payload in numbered(first, last):
        producer.produce(topic, value=payload)
    assert producer.flush(30) == 0  # so that what is aborted stands in the log


def test_transactions_some_aborted(house: House, make_workers: Make) -> None:
    """Row 12 of the failure matrix: markers and aborted records are passed over, each as empty, none as lost."""
    topic = house.topic(partitions=2)
    producer = transactional(house, topic)
    committed: set[int] = set()
    for number in range(40):
        numbers = range(number * 50, number * 50 + 50)
        send(producer, topic, numbers.start, numbers.stop)
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            committed |= set(numbers)
    names = {lane: f"{topic}-{lane}" for lane in WITH_STORED_OFFSETS}
    for lane, name in names.items():
        make_workers(house.kafka_spec(topic, datasource=name, assignment=lane)).start(0)
    dirty = f"{topic}-dirty"
    times = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
    make_workers(uncommitted(house, topic, dirty, assignment="consumer_group", properties=times)).start(0)
    published(house, dirty, 40 * 50)
    assert read_once(check_exactly_once(house, dirty, range(40 * 50))) == 40 * 50, "the aborted ones are records too"
    for name in names.values():
        published(house, name, len(committed))
        wait_for(
            "the stored offsets are the log's ends, behind the last markers",
            lambda name=name: stored_offsets(house, name) == log_ends(house, topic),
            60,
            lambda name=name: stored_offsets(house, name),
        )
        assert read_once(check_exactly_once(house, name, committed)) == len(committed)
        assert not any("gap" in receipts_of(house, name, p) for p in (0, 1))


def read_once(totals: dict[str, Any]) -> int:
    """Polled records, without those that were given up and polled again.

    A busy machine may give a member no processor for a session; Kafka deals its partitions out again then.
    """
    return int(totals["polled"] - totals["released"])


def uncommitted(
    house: House, topic: str, datasource: str, properties: dict[str, Any] | None = None, **io_config: Any
) -> dict[str, Any]:
    """A spec that reads what is aborted or not decided yet, too."""
    given = {"bootstrap.servers": house.bootstrap, "isolation.level": "read_uncommitted", **(properties or {})}
    return house.kafka_spec(topic, datasource=datasource, consumerProperties=given, **io_config)


def log_ends(house: House, topic: str) -> dict[int, int]:
    asked = {
        TopicPartition(topic, p): OffsetSpec.latest() for p in house.admin.list_topics(topic).topics[topic].partitions
    }
    return {p.partition: future.result(30).offset for p, future in house.admin.list_offsets(asked).items()}


def stored_offsets(house: House, datasource: str) -> dict[int, int]:
    return dict(
        house.sql(
            "SELECT k.partition, k.next_offset FROM publishing_progresskey k"
            " JOIN sources_source s ON s.id = k.source_id"
            " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.current",
            datasource,
        )
    )


def test_a_compacted_topic(house: House, make_workers: Make) -> None:
    """Row 12 of the failure matrix: what compaction took out is empty, and no gap."""
    topic = f"compacted-{uuid.uuid4().hex[:8]}"
    config = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.001"}
    house.admin.create_topics([NewTopic(topic, 1, config=config)])[topic].result(30)
    for n, payload in enumerate(numbered(0, 20_000)):
        house.producer.produce(topic, value=payload, key=str(n % 100))
        if n % 2_000 == 0:
            assert house.producer.flush(30) == 0
    assert house.producer.flush(30) == 0
    wait_for("the log is compacted", lambda: len(everything(house, topic)) < 15_000, 60)
    workers = make_workers(house.kafka_spec(topic))
    workers.start(0)
    wait_for("all is read", lambda: stored_offsets(house, topic).get(0) == 20_000, 60, lambda: workers.status(0))
    stored = set(stored_numbers(house, topic)[0])
    assert stored >= {json.loads(value)["n"] for value in everything(house, topic)}
    check_exactly_once(house, topic, stored)
    assert offsets.count(receipts_of(house, topic, 0)["empty"]) == 20_000 - len(stored) > 5_000
    assert "gap" not in receipts_of(house, topic, 0)


def everything(house: House, topic: str) -> list[bytes]:
    """All that partition 0 holds now."""
    consumer = Consumer(
        {
            "bootstrap.servers": house.bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        while True:
            for message in consumer.consume(5000, 5.0):
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    return found
                found.append(message.value())
    finally:
        consumer.close()


def test_a_transaction_is_left_open(house: House, make_workers: Make) -> None:
    """Row 13 of the failure matrix: it waits at the stable offset, shows lag and does not end as idle; then goes on.

    With read_uncommitted there is nothing to wait for; a task that goes on from there with read_committed waits.
    """
    topic = house.topic(partitions=1)
    house.produce(topic, numbered(0, 100))
    producer = transactional(house, topic)
    send(producer, topic, 100, 150)
    house.produce(topic, numbered(150, 200))
    idle = {"inactiveAfterMillis": 1000}
    workers = make_workers(house.kafka_spec(topic, idleConfig=idle), owner=None)
    workers.start(0)
    name = f"{topic}-dirty"
    dirty = make_workers(uncommitted(house, topic, name, idleConfig=idle), owner=None)
    dirty.start(0)
    published(house, topic, 100)
    looks = {observation(house, workers)["observed_at"]}

    def looked_three_times() -> bool:
        seen = observation(house, workers)
        looks.add(seen["observed_at"])
        return seen["lag"] >= 100 and len(looks) > 3

    wait_for("the watch has looked a few times", looked_three_times, 60, lambda: observation(house, workers))
    assert house.sql("SELECT goal FROM tasks_task WHERE id = %s", workers.id) == [("continue",)]
    assert stored_offsets(house, topic) == {0: 100}
    assert dirty.ended(0) == ("ended", "")
    assert check_exactly_once(house, name, range(200))["polled"] == 200
    assert observation(house, dirty)["lag"] == 0
    dirty.close()
    clean = make_workers(house.kafka_spec(topic, datasource=name, idleConfig=idle), owner=None)
    clean.start(0)
    clean.wait_for_status(0, "it goes on behind the open transaction", state="reading")
    producer.commit_transaction(30)
    published(house, topic, 200)
    send(producer, topic, 200, 250)
    producer.abort_transaction(30)
    assert workers.ended(0) == clean.ended(0) == ("ended", "")
    check_exactly_once(house, name, range(200))
    totals = check_exactly_once(house, topic, range(200))
    assert totals["polled"] == 200


def observation(house: House, workers: Workers) -> dict[str, Any]:
    seen: dict[str, Any] = house.sql("SELECT observation FROM tasks_task WHERE id = %s", workers.id)[0][0]
    return {"observed_at": "", "lag": 0, **seen}


def test_records_that_can_not_be_read(house: House, make_workers: Make) -> None:
    """Row 19 of the failure matrix: each ends in quarantine, those that make the decoder die too, and stops nothing."""
    topic = house.topic(partitions=2)
    poison = [b"{broken", None, b'{"n": -1, "value": 0}', b'{"time": "no time", "n": -1}', b"[1]", b"\xff\xfe"]
    pill = b'{"time": "2025-06-01", "n": -1, "value": -3, "text": "poison-pill"}'
    good = list(numbered(0, 600))
    house.produce(topic, [*good[:100], *poison, *good[100:200], pill, *good[200:300]], partition=0)
    house.produce(topic, [*good[300:450], poison[0], *good[450:]], partition=1)
    names = {lane: f"{topic}-{lane}" for lane in LANES}
    for lane, name in names.items():
        house.fail_at(name, crash_marker="poison-pill")
        # Two members: the record goes from one to the other as they die.
        make_workers(lane_spec(house, lane, topic, name, tombstones="quarantine"), 2).start(0, 1)
    for lane, name in names.items():
        published(house, name, 600)
        wait_for("all of it is counted", lambda name=name: house.totals(name)["unparseable"] == 8, 60)
        check_exactly_once(house, name, range(600))
        kept = house.api("GET", f"/api/v1/datasources/{name}/quarantine/?limit=100")["results"]
        crashed = [k for k in kept if k["reason"] == "decoder_crash"]
        assert [(k["partition"], k["offset"]) for k in crashed] == [(0, 200 + len(poison))]
        assert all(k["error"] for k in kept)
        if lane == "share_group":
            assert crashed[0]["delivery_count"] >= 3
