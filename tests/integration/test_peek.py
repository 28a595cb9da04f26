"""A look at a topic on a real broker: which records, of which partitions, and what stays untouched."""

from __future__ import annotations

import socket
import time
import uuid
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from ingestion.sources.base import SourceProblem
from ingestion.sources.peek import STEP_BACK, Limits, NoSuchTopic, Peek, TopicLocation, allocate, peek
from tests.support.broker import Broker
from tests.support.formats import HERE

MUCH = 16 * 1024 * 1024


def look(
    broker: Broker, topic: str, rows: int, earliest: bool = True, size_bytes: int = MUCH, **properties: Any
) -> Peek:
    limits = Limits(rows, size_bytes, time.monotonic() + 30)
    place = TopicLocation({"bootstrap.servers": broker.bootstrap, **properties}, topic, HERE)
    return peek(place, earliest=earliest, limits=limits)


def values(found: Peek) -> list[int]:
    return [int(m.value()) for m in found.messages]


def filled(broker: Broker, partitions: int, each: int) -> str:
    """Record n of partition p is ``1000 p + n``, written at the time n."""
    topic = broker.topic("peek", partitions, {"retention.ms": "-1"})  # else a look for expired records deletes them
    for partition in range(partitions):
        for n in range(each):
            broker.producer.produce(topic, str(1000 * partition + n).encode(), partition=partition, timestamp=1 + n)
    assert broker.producer.flush(30) == 0
    return topic


def test_the_first_and_the_last_records_of_all_partitions_by_time(broker: Broker) -> None:
    topic = filled(broker, 3, 100)
    assert values(look(broker, topic, 6)) == [0, 1000, 2000, 1, 1001, 2001]
    assert values(look(broker, topic, 6, earliest=False)) == [98, 1098, 2098, 99, 1099, 2099]
    assert len(look(broker, topic, 1).messages) == 1
    assert len(values(look(broker, topic, 1000))) == 300


def test_what_one_partition_lacks_the_others_give(broker: Broker) -> None:
    topic = broker.topic("peek", 4)
    broker.produce(topic, (str(n).encode() for n in range(50)), partition=1)
    broker.produce(topic, (str(1000 + n).encode() for n in range(3)), partition=2)
    for earliest in (True, False):
        found = look(broker, topic, 20, earliest=earliest)
        assert Counter(m.partition() for m in found.messages) == {1: 17, 2: 3}
        assert found.stopped_by == ""


@pytest.mark.parametrize(
    ("available", "wanted", "shares"),
    [
        ({}, 5, {}),
        ({0: 0}, 5, {}),
        ({0: 10}, 5, {0: 5}),
        ({0: 10, 1: 10}, 5, {0: 3, 1: 2}),
        ({0: 1, 1: 10, 2: 10}, 9, {0: 1, 1: 4, 2: 4}),
        ({0: 10, 1: 10, 2: 10}, 2, {0: 1, 1: 1}),
        ({0: 2, 1: 0, 2: 3}, 100, {0: 2, 2: 3}),
    ],
)
def test_how_many_each_takes(available: dict[int, int], wanted: int, shares: dict[int, int]) -> None:
    assert allocate(available, wanted) == shares


def in_transactions(broker: Broker, topic: str, *kept: bool, leave_open: bool = False) -> Producer:
    """Transactions of two records each; the last record is left open if told so."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": uuid.uuid4().hex, "linger.ms": 0})
    producer.init_transactions()
    for number, keep in enumerate(kept):
        producer.begin_transaction()
        for n in range(2):
            producer.produce(topic, str(2 * number + n).encode())
        assert producer.flush(30) == 0
        if keep:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    if leave_open:
        producer.begin_transaction()
        producer.produce(topic, b"9999")
        assert producer.flush(30) == 0
    return producer


@pytest.mark.parametrize("earliest", [True, False])
def test_only_what_is_committed_is_seen(broker: Broker, earliest: bool) -> None:
    topic = broker.topic("peek", 1)
    producer = in_transactions(broker, topic, True, False, True, leave_open=True)
    assert values(look(broker, topic, 100, earliest=earliest)) == [0, 1, 4, 5]
    everything = TopicLocation({"bootstrap.servers": broker.bootstrap}, topic, HERE, "read_uncommitted")
    found = peek(everything, earliest=earliest, limits=Limits(100, MUCH, time.monotonic() + 30))
    assert values(found) == [0, 1, 2, 3, 4, 5, 9999], "unless the spec says otherwise"
    producer.abort_transaction()
    assert values(look(broker, topic, 100, earliest=earliest)) == [0, 1, 4, 5]


def test_behind_aborted_records_the_last_ones_are_found(broker: Broker) -> None:
    topic = broker.topic("peek", 1)
    broker.produce(topic, (str(n).encode() for n in range(500)))
    in_transactions(broker, topic, *[False] * (2 * STEP_BACK))
    assert values(look(broker, topic, 3, earliest=False)) == [497, 498, 499]


def test_records_that_were_deleted_are_not_waited_for(broker: Broker) -> None:
    topic = filled(broker, 1, 20)
    broker.admin.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0, 15)].result(30)
    assert values(look(broker, topic, 100)) == values(look(broker, topic, 100, earliest=False)) == list(range(15, 20))


def test_how_many_came_within_a_window_is_counted_by_their_times(broker: Broker) -> None:
    """Of partition 0 five came an hour ago, of partition 1 forty within one millisecond, just now."""
    topic = broker.topic("peek", 3)
    now_ms = time.time_ns() // 1_000_000
    for partition, count, ago_s in ((0, 5, 3_600), (0, 2, 30), (1, 40, 1)):
        for n in range(count):
            broker.producer.produce(topic, str(n).encode(), partition=partition, timestamp=now_ms - ago_s * 1000)
    assert broker.producer.flush(30) == 0
    place = TopicLocation({"bootstrap.servers": broker.bootstrap}, topic, HERE)
    limits = Limits(3, MUCH, time.monotonic() + 30)
    assert peek(place, earliest=False, limits=limits, windows_s=(60, 7200)).window_counts == {60: 42, 7200: 47}


def test_an_empty_topic_has_none(broker: Broker) -> None:
    found = look(broker, broker.topic("peek", 3), 10)
    assert (found.messages, found.stopped_by) == ([], "")


def test_a_topic_that_is_not_there_is_said_to_be_so_and_not_made(broker: Broker) -> None:
    topic = f"no-{uuid.uuid4().hex}"
    with pytest.raises(NoSuchTopic, match=topic):
        look(broker, topic, 10)
    assert topic not in broker.admin.list_topics(timeout=30).topics


def test_no_group_is_joined_and_none_is_made(broker: Broker) -> None:
    topic = filled(broker, 2, 10)
    before = {g.group_id for g in broker.admin.list_consumer_groups().result().valid}
    look(broker, topic, 10)
    look(broker, topic, 10, earliest=False)
    assert {g.group_id for g in broker.admin.list_consumer_groups().result().valid} <= before


def test_the_reading_ends_when_there_are_enough_bytes(broker: Broker) -> None:
    topic = broker.topic("peek", 1)
    broker.produce(topic, (b"x" * 100_000 for _ in range(50)))
    found = look(broker, topic, 50, size_bytes=500_000)
    assert found.stopped_by == "bytes"
    assert len(found.messages) == 5
    assert look(broker, topic, 5, size_bytes=500_000).stopped_by == ""


def test_a_spec_s_own_limits_of_the_client_do_not_count(broker: Broker) -> None:
    topic = filled(broker, 1, 10)
    limits: dict[str, Any] = {"fetch.min.bytes": "100000", "fetch.max.bytes": "2000000000"}
    assert len(look(broker, topic, 10, **limits).messages) == 10


def test_what_does_not_answer_is_a_problem_with_its_cause() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    limits = Limits(10, MUCH, time.monotonic() + 1)
    with pytest.raises(SourceProblem, match="refused"):
        peek(TopicLocation({"bootstrap.servers": address}, "t", HERE), earliest=True, limits=limits)
