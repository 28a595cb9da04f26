"""Holes read by an ordinary consumer on a real broker: transactions, aborted ones, deleted records, a stop."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ingestion.sources import repair
from ingestion.sources.repair import MAX_OFFSETS, RepairSource, plan_batches
from ingestion.specs import offsets
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.messages.protocol import RepairRange
from tests.support.broker import Broker

COMMITTED, ABORTED = 5, 3


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """20 transactions in one partition, every second one aborted after its records had reached the broker."""
    name = broker.make_topic(f"holes-{uuid.uuid4().hex[:8]}", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions()
    for number in range(20):
        producer.begin_transaction()
        keep = number % 2 == 0
        for n in range(COMMITTED if keep else ABORTED):
            producer.produce(name, f"{number}-{n}".encode())
        assert producer.flush(30) == 0
        if keep:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    return name


END = 10 * (COMMITTED + 1) + 10 * (ABORTED + 1)


def read(broker: Broker, topic: str, *ranges: tuple[int, int], isolation: Isolation = "read_committed") -> RepairSource:
    holes = [RepairRange(partition=0, start=a, end=b) for a, b in ranges]
    return RepairSource({"bootstrap.servers": broker.bootstrap}, topic, holes, isolation=isolation)


@pytest.mark.parametrize(
    ("isolation", "records"),
    [("read_committed", 10 * COMMITTED), ("read_uncommitted", 10 * (COMMITTED + ABORTED))],
)
def test_records_are_read_and_the_rest_is_empty(broker: Broker, topic: str, isolation: Isolation, records: int) -> None:
    """Those that the share group would have had, by its isolation level."""
    source = read(broker, topic, (0, END), isolation=isolation)
    batch = source.poll(0)
    assert batch is not None and source.exhausted()
    assert len(batch) == records
    empty = batch.extra[0].empty
    assert offsets.count(empty) == END - records
    assert batch.extra[0].gap == []


def test_holes_close_together_are_one_batch_and_hold_nothing_else(broker: Broker, topic: str) -> None:
    markers = [(COMMITTED, COMMITTED + 1), (END - 1, END)]
    source = read(broker, topic, (0, 2), *markers)
    batch = source.poll(0)
    assert batch is not None and source.exhausted()
    assert batch.payloads == [b"0-0", b"0-1"]
    assert batch.offsets.tolist() == [0, 1]
    assert batch.extra[0].empty == markers


def test_what_retention_removed_is_a_gap(broker: Broker) -> None:
    name = broker.topic("gap", partitions=1)
    broker.produce(name, [b"a", b"b", b"c"])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(name, 0, 2)]).values():
        future.result(30)
    batch = read(broker, name, (0, 3)).poll(0)
    assert batch is not None
    assert batch.extra[0].gap == [(0, 2)]
    assert batch.payloads == [b"c"]


def test_what_retention_removed_is_one_gap_however_long_it_is(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer for each span of a hundred million removed offsets would take hours."""
    monkeypatch.setattr(repair, "MAX_OFFSETS", 5)
    name = broker.topic("long-gap", partitions=2)
    for partition in range(2):
        broker.produce(name, [str(n).encode() for n in range(53)], partition=partition)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(name, 0, 51)]).values():
        future.result(30)
    holes = [RepairRange(partition=p, start=a, end=b) for p, a, b in [(0, 0, 20), (0, 22, 53), (1, 0, 7)]]
    source = RepairSource({"bootstrap.servers": broker.bootstrap}, name, holes)
    batches = []
    while (batch := source.poll(0)) is not None:
        batches.append((batch.payloads, {p: o.gap for p, o in batch.extra.items()}))
    assert batches == [
        ([], {0: [(0, 20), (22, 51)]}),
        ([b"51"], {}),
        ([b"52"], {}),
        ([b"0", b"1", b"2", b"3", b"4"], {}),
        ([b"5", b"6"], {}),
    ]


def test_a_stop_is_obeyed_while_kafka_is_waited_for(broker: Broker) -> None:
    name = broker.topic("stop", partitions=1)
    source = RepairSource(
        {"bootstrap.servers": broker.bootstrap}, name, [RepairRange(partition=0, start=0, end=5)], lambda: True
    )
    assert source.poll(0) is None
    assert source.exhausted()


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(0, 0, 5), (0, 10, 12)], [(0, [(0, 5), (10, 12)])]),
        ([(1, 0, 5), (0, 0, 5)], [(0, [(0, 5)]), (1, [(0, 5)])]),
        ([(0, 0, MAX_OFFSETS + 1)], [(0, [(0, MAX_OFFSETS)]), (0, [(MAX_OFFSETS, MAX_OFFSETS + 1)])]),
        (
            [(0, 0, 1), (0, MAX_OFFSETS - 1, MAX_OFFSETS), (0, MAX_OFFSETS, MAX_OFFSETS + 1)],
            [(0, [(0, 1), (MAX_OFFSETS - 1, MAX_OFFSETS)]), (0, [(MAX_OFFSETS, MAX_OFFSETS + 1)])],
        ),
    ],
)
def test_holes_are_gathered_as_far_as_a_span_reaches(
    ranges: list[tuple[int, int, int]], expected: list[tuple[int, list[tuple[int, int]]]]
) -> None:
    assert plan_batches(RepairRange(partition=p, start=a, end=b) for p, a, b in ranges) == expected
