"""Positions as a real broker resolves them: by the times of records, whoever sets these."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer, TopicPartition

from controlplane.connections.kafka import KafkaProblem
from controlplane.connections.positions import ResolvedPosition, resolve
from ingestion.sources.topic import TopicWatch
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.positions import Position
from tests.support.broker import Broker
from tests.support.formats import HERE
from tests.support.guarded_kafka import Guarded, guarded

__all__ = ["guarded"]  # a fixture
START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def produce(broker: Broker, topic: str, *minutes: int, partition: int = 0) -> None:
    """A record of each of these minutes, each in a batch of its own."""
    for number in minutes:
        time_ms = int(minute(number).timestamp() * 1000)
        broker.producer.produce(topic, value=b"{}", partition=partition, timestamp=time_ms)
        assert broker.producer.flush(60) == 0


def resolved(broker: Broker, topic: str, text: str, isolation: Isolation = "read_committed") -> ResolvedPosition:
    found = resolve({"bootstrap.servers": broker.bootstrap}, topic, Position.parse(text), isolation)
    assert found is not None
    return found


def test_no_record_of_the_time_or_later_lies_before_where_times_go_back_and_forth(broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    produce(broker, topic, 0, 10, 5, 20)
    found = resolved(broker, topic, "2026-01-31T13:05:00+01:00")
    first, empty = found.partitions
    assert (first.offset, first.end, first.records, first.time) == (1, 4, 3, minute(10))
    assert (empty.offset, empty.records, empty.time) == (0, 0, None)
    assert found.create_time is True
    assert "times may go back and forth" in " ".join(found.warnings)
    watch = TopicWatch({"bootstrap.servers": broker.bootstrap}, topic, HERE)
    assert watch.first_since([0, 1], int(minute(5).timestamp() * 1000), "read_committed") == {0: 1}


def test_times_that_the_broker_sets(broker: Broker) -> None:
    topic = broker.topic(partitions=1, config={"message.timestamp.type": "LogAppendTime"})
    produce(broker, topic, 0, 10)
    found = resolved(broker, topic, "2026-01-31T12:30:00Z")
    assert (found.partitions[0].offset, found.create_time, found.warnings) == (0, False, [])
    assert found.partitions[0].time not in (minute(0), minute(10))


def test_earliest_and_latest(broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    produce(broker, topic, 0, 1, 2)
    assert resolved(broker, topic, "earliest").offsets == {0: 0}
    assert resolved(broker, topic, "latest").offsets == {0: 3}
    assert resolved(broker, topic, "1969-12-31T23:59:59Z").offsets == {0: 0}


def test_a_time_before_the_log_begins_is_its_first_record(broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    produce(broker, topic, 0, 1, 2, 3)
    produce(broker, topic, 0, partition=1)
    for future in broker.admin.delete_records([TopicPartition(topic, 0, 2)]).values():
        future.result(30)
    found = resolved(broker, topic, "2026-01-31T12:01:00Z")
    assert [(p.offset, p.log_start, p.records) for p in found.partitions] == [(2, 2, 2), (1, 0, 0)]
    assert "deleted the older records of partition 0:" in " ".join(found.warnings)


def test_a_partition_whose_records_are_all_deleted_begins_at_its_end(broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    produce(broker, topic, 0, 1)
    for future in broker.admin.delete_records([TopicPartition(topic, 0, 2)]).values():
        future.result(30)
    assert resolved(broker, topic, "2026-01-31T12:00:00Z").offsets == {0: 2}


def test_a_time_in_the_future_is_the_end_and_says_so(broker: Broker) -> None:
    topic = broker.topic(partitions=1)
    produce(broker, topic, 0, 1)
    found = resolved(broker, topic, "9999-01-01T00:00:00Z")
    assert found.offsets == {0: 2}
    assert "This time is in the future" in found.warnings[0]


@pytest.mark.parametrize(("isolation", "place"), [("read_committed", (2, 2)), ("read_uncommitted", (2, 4))])
def test_records_of_an_open_transaction_lie_behind_the_committed_end(
    broker: Broker, isolation: Isolation, place: tuple[int, int]
) -> None:
    topic = broker.topic(partitions=1)
    produce(broker, topic, 0, 1)
    config = {"bootstrap.servers": broker.bootstrap, "transactional.id": uuid.uuid4().hex, "linger.ms": 0}
    producer = Producer(config)
    producer.init_transactions()
    producer.begin_transaction()
    for number in (10, 11):
        producer.produce(topic, b"{}", partition=0, timestamp=int(minute(number).timestamp() * 1000))
    assert producer.flush(60) == 0
    [found] = resolved(broker, topic, "2026-01-31T12:05:00Z", isolation).partitions
    producer.abort_transaction()
    assert (found.offset, found.end) == place


def test_a_topic_that_is_not_there_has_no_positions(broker: Broker) -> None:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    assert resolve({"bootstrap.servers": broker.bootstrap}, name, Position("latest"), "read_committed") is None


def test_without_rights_on_the_settings_it_is_not_known_who_sets_the_times(guarded: Guarded) -> None:
    topic, at = guarded.topic(partitions=1), Position.parse("2026-01-31T12:05:00Z")
    produce(guarded, topic, 0, 10)
    with pytest.raises(KafkaProblem, match="lacks the right DESCRIBE on topic"):
        resolve(guarded.properties, topic, at, "read_committed")
    guarded.give("TOPIC", topic, "DESCRIBE")
    found = resolve(guarded.properties, topic, at, "read_committed")
    assert found is not None
    assert (found.offsets, found.create_time) == ({0: 1}, None)
    assert "lacks the right DESCRIBE_CONFIGS" in found.warnings[0]
