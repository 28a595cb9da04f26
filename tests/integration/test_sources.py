"""The three real sources keep the contracts of their kinds, on a real Kafka, and bring what Kafka says of a record."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import Batch, StoredOffsetSource
from ingestion.sources.consumer_group import ConsumerGroupSource
from ingestion.sources.offset_ranges import OffsetRangeSource
from ingestion.sources.share_group import ShareGroupSource
from ingestion.sources.stored_offsets import StoredOffsets
from ingestion.sources.topic import TopicWatch, configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from ingestion.task.claims import Claims
from tests.contracts.source_contracts import RECORDS, LeasedContract, Log, StoredOffsetContract, end, read, until
from tests.support.broker import Broker
from tests.support.formats import HERE
from tests.support.indexer import assignment

SENT_MS = 1_748_790_000_000


def produce_with_fields(broker: Broker, topic: str) -> None:
    """Two records: one with a key and headers, one of which has no value, and one with neither."""
    headers: list[tuple[str, bytes | None]] = [("origin", b"site"), ("empty", None)]
    broker.producer.produce(topic, value=b"0", key=b"k", timestamp=SENT_MS, headers=headers, partition=0)
    broker.producer.produce(topic, value=b"1", timestamp=SENT_MS + 1, partition=0)
    assert broker.producer.flush(60) == 0


def fields_of(batches: Sequence[Batch]) -> list[tuple[bytes | None, int | None, list[tuple[str, bytes | None]]]]:
    return [
        (key, at, list(headers))
        for batch in batches
        for key, at, headers in zip(batch.keys, batch.timestamps_ms, batch.headers, strict=True)
    ]


FIELDS = [(b"k", SENT_MS, [("origin", b"site"), ("empty", None)]), (None, SENT_MS + 1, [])]


class TestShareGroup(LeasedContract):
    @pytest.fixture(autouse=True)
    def _on(self, broker: Broker) -> None:
        self.broker = broker

    def source(self, records: Sequence[bytes], lock_s: float) -> ShareGroupSource:
        topic = self.broker.topic(partitions=1)
        document = self.broker.spec(topic, lock_ms=int(lock_s * 1000), consumersPerIndexer=2)
        io_config = parse_task_spec({**document, "type": "index_kafka_share_group"}).spec.ioConfig
        assert isinstance(io_config, ShareGroupIOConfig)
        properties = {"bootstrap.servers": self.broker.bootstrap}
        configure_group(properties, io_config, HERE)
        self.broker.produce(topic, records)
        self.topic = topic
        return ShareGroupSource(properties, io_config, "client")

    def test_a_records_key_time_and_headers_come_with_it(self) -> None:
        batches: list[Batch] = []

        def take(batch: Batch) -> None:
            batches.append(batch)
            end(source, batch)

        with self.opened([]) as source:
            produce_with_fields(self.broker, self.topic)
            until("both records", source, lambda: sum(map(len, batches)) == 2, take)
        assert fields_of(batches) == FIELDS


class _OnKafka(Log):
    def __init__(self, broker: Broker, plane: MemoryControlPlane, in_group: bool, poll_s: float = 0.1) -> None:
        self._poll_s = poll_s
        self.topic = broker.topic(partitions=1)
        self._broker = broker
        self._in_group = in_group
        self._properties = {"bootstrap.servers": broker.bootstrap}
        self._watch = TopicWatch(self._properties, self.topic, HERE)
        identity = self._watch.identity()
        assert identity is not None
        super().__init__(plane, identity.topic_id)
        self.replicated = not in_group
        self._producer = Producer({**self._properties, "transactional.id": uuid.uuid4().hex, "linger.ms": 0})
        self._producer.init_transactions()

    def append(self, records: Sequence[bytes]) -> None:
        self._producer.begin_transaction()
        for payload in records:
            self._producer.produce(self.topic, payload, partition=0)
        self._producer.commit_transaction()

    def remove_before(self, offset: int) -> None:
        for future in self._broker.admin.delete_records([TopicPartition(self.topic, 0, offset)]).values():
            future.result(30)

    def source(self, claims: Claims, may_reset: bool = False, replicas: int = 1) -> StoredOffsetSource:
        stored = StoredOffsets(
            self.topic, self._watch, claims, True, may_reset, with_generation=self._in_group, replicas=replicas
        )
        if self._in_group:
            return ConsumerGroupSource(self._properties, stored, f"group-{self.topic}", "client", self._poll_s)
        return OffsetRangeSource(self._properties, stored, lambda partition: True, "client", 0.1)


class TestStored(StoredOffsetContract):
    def test_what_is_left_out_comes_before_what_the_same_poll_has_read(self, broker: Broker, tmp_path: Path) -> None:
        """In a group a partition is dealt out within a poll, which may bring its first records too."""
        log = _OnKafka(broker, MemoryControlPlane(assignment(tmp_path, kafka=True)), in_group=True, poll_s=5.0)
        log.append(RECORDS)
        log.store(0)
        log.remove_before(5)
        source = log.opened(may_reset=True)
        batches = read(source, 11, take_s=5.0)
        source.close()
        moves = [(b.progress[0].start, b.progress[0].end) for b in batches]
        assert moves[0] == (0, 5) and moves[1][0] == 5

    def test_a_records_key_time_and_headers_come_with_it(self, broker: Broker, log: _OnKafka) -> None:
        source = log.opened()
        produce_with_fields(broker, log.topic)
        assert fields_of(read(source, 2)) == FIELDS

    @pytest.fixture(params=[False, True], ids=["by number", "in a group"])
    def log(self, broker: Broker, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
        log = _OnKafka(broker, MemoryControlPlane(assignment(tmp_path, kafka=True)), request.param)
        yield log
        for source in log.sources:
            source.close()
