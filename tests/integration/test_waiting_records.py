"""How much there is left to read, by what the broker's answers to fetches say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ingestion.sources.reader import Reader
from ingestion.sources.stored_offsets import StartPosition
from ingestion.specs.inputs.group_config import Isolation
from tests.support.broker import Broker
from tests.support.waiting import wait_for


@pytest.fixture
def topic(broker: Broker) -> str:
    return broker.topic(partitions=2)


@pytest.fixture(params=["read_committed", "read_uncommitted"])
def reader(broker: Broker, topic: str, request: pytest.FixtureRequest) -> Iterator[Reader]:
    isolation: Isolation = request.param
    made = Reader(topic, {"bootstrap.servers": broker.bootstrap}, isolation, "waiting", "waiting", 0.1)
    made.consumer.incremental_assign(made.add({p: StartPosition(0, 0, None) for p in (0, 1)}))
    yield made
    made.close()


def read(reader: Reader, count: int) -> None:
    """So many records, and then until nothing is known to wait."""
    found = 0

    def all_read() -> bool:
        nonlocal found
        batch = reader.read(0.5)
        found += 0 if batch is None else len(batch)
        return found >= count and reader.waiting == 0

    wait_for(f"{count} records are read, and none waits", all_read, 30, lambda: (found, reader.waiting))
    assert found == count


def test_nothing_is_known_before_the_first_fetch_and_nothing_waits_once_all_is_read(
    broker: Broker, topic: str, reader: Reader
) -> None:
    assert reader.waiting is None
    read(reader, 0)
    broker.produce(topic, [b"x"] * 50, partition=0)
    read(reader, 50)
    broker.produce(topic, [b"x"] * 5, partition=1)
    read(reader, 5)


def test_what_is_not_committed_does_not_wait_for_who_reads_what_is(broker: Broker, topic: str, reader: Reader) -> None:
    committed = reader._config["isolation.level"] == "read_committed"
    broker.produce(topic, [b"x"] * 10, partition=0)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"tx-{topic}", "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(7):
        producer.produce(topic, b"y", partition=0)
    assert producer.flush(30) == 0
    read(reader, 10 if committed else 17)
    producer.commit_transaction(30)
    if committed:
        read(reader, 7)
