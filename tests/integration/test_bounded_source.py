"""A bounded read on a real broker, with a control plane in memory: exactly its offsets, and an end that comes."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from ingestion.client.memory import MemoryControlPlane
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.base import SourceProblem
from ingestion.sources.topic import PinnedTopic, TopicWatch
from ingestion.spark.sources import source_factory
from ingestion.specs import offsets
from ingestion.specs.messages.protocol import Assignment, PublishRequest, RepairRange
from ingestion.task.control import Control
from ingestion.task.indexer import Indexer, IndexerDependencies
from tests.support.broker import Broker
from tests.support.formats import HERE
from tests.support.indexer import assignment, record, stored, total
from tests.support.waiting import wait_for


class Desk:
    """Reads ranges of a topic with an indexer in this process."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        (folder / "segments").mkdir()
        (folder / "scratch").mkdir()
        self.control = Control(0, 1)
        self.control.update("continue")

    def given(self, topic: str, *ranges: tuple[int, int, int], **more: Any) -> Assignment:
        made = assignment(self.folder, kafka=True, io_config={"topic": topic})
        wanted = [RepairRange(partition=p, start=start, end=end) for p, start, end in ranges]
        properties = {"bootstrap.servers": self.broker.bootstrap}
        changes = {"kind": "bounded", "bounded": True, "ranges": wanted, "consumer_properties": properties}
        return made.model_copy(update={**changes, "address_policy": HERE, **more})

    def read(
        self, given: Assignment, plane: MemoryControlPlane | None = None, topic_id: str = ""
    ) -> MemoryControlPlane:
        """To its end."""
        plane = plane or MemoryControlPlane(given)
        watch = TopicWatch(given.consumer_properties, given.spec.ioConfig.topic, HERE)
        name = given.spec.ioConfig.topic
        surroundings = IndexerDependencies(
            client=plane,
            topic=PinnedTopic(watch, name, topic_id) if topic_id else watch,
            make_source=source_factory(given, 0, watch),
            storage=open_deep_storage(given.deep_storage),
            scratch=self.folder / "scratch",
            host="here",
        )
        Indexer(given, self.control, surroundings).run()
        return plane


@pytest.fixture
def desk(broker: Broker, tmp_path: Path) -> Desk:
    return Desk(broker, tmp_path)


def settled(plane: MemoryControlPlane, partition: int = 0) -> list[offsets.Range]:
    """What the publishes ended; every offset once, or there are overlaps."""
    ranges = [(a.start, a.end) for p in plane.published for n, a in p.progress.items() if n == partition]
    merged = offsets.merged(ranges)
    assert offsets.count(ranges) == offsets.count(merged)
    return merged


def records(count: int, first: int = 0) -> list[bytes | None]:
    return [record(n) for n in range(first, first + count)]


def test_exactly_the_range_is_read(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=2)
    desk.broker.produce(topic, records(100), partition=0)
    desk.broker.produce(topic, records(100, 100), partition=1)
    plane = desk.read(desk.given(topic, (0, 10, 30), (1, 95, 100)))
    assert stored(plane, desk.folder) == [*range(10, 30), *range(195, 200)]
    assert (settled(plane), settled(plane, 1)) == ([(10, 30)], [(95, 100)])
    assert total(plane).polled == 25


def test_several_ranges_of_a_partition_are_read_in_turn(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(100))
    plane = desk.read(desk.given(topic, (0, 50, 60), (0, 5, 10), (0, 60, 61)))
    assert stored(plane, desk.folder) == [*range(5, 10), *range(50, 61)]


def test_what_is_settled_is_left_out(desk: Desk) -> None:
    """A stop, or a kill, and a second start continue; so does another reader of the same source."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(100))
    first = desk.given(topic, (0, 20, 40))
    plane = desk.read(first)
    plane.prepared_assignment = desk.given(topic, (0, 0, 100))
    desk.read(plane.prepared_assignment, plane)
    assert stored(plane, desk.folder) == list(range(100))
    assert settled(plane) == [(0, 100)]


def transactional(desk: Desk) -> Producer:
    quiet = {"transactional.id": uuid.uuid4().hex, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": desk.broker.bootstrap, **quiet})
    producer.init_transactions()
    return producer


def write(producer: Producer, topic: str, payloads: list[bytes | None]) -> None:
    producer.begin_transaction()
    for payload in payloads:
        producer.produce(topic, payload, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("end", [3, 4, 5, 6, 8, 9])
def test_an_aborted_transaction_at_the_end(desk: Desk, end: int) -> None:
    """Three committed records and their marker, four aborted ones and theirs: the end is each of these."""
    topic = desk.broker.topic(partitions=1)
    producer = transactional(desk)
    write(producer, topic, records(3))
    producer.commit_transaction()
    write(producer, topic, records(4, 3))
    producer.abort_transaction()
    plane = desk.read(desk.given(topic, (0, 0, end)))
    assert stored(plane, desk.folder) == [0, 1, 2]
    assert settled(plane) == [(0, end)]
    assert total(plane).polled == 3


def test_an_open_transaction_below_the_end_is_waited_for(desk: Desk) -> None:
    """The end lies inside of it."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(3))
    producer = transactional(desk)
    write(producer, topic, records(4, 3))
    given = desk.given(topic, (0, 0, 5))
    plane = MemoryControlPlane(given)
    reading = threading.Thread(target=desk.read, args=(given, plane), daemon=True)
    reading.start()
    wait_for("all that is committed is published", lambda: settled(plane) == [(0, 3)], 60)
    assert reading.is_alive()
    producer.commit_transaction()
    reading.join(60)
    assert not reading.is_alive()
    assert stored(plane, desk.folder) == [0, 1, 2, 3, 4]


def test_a_transaction_that_opens_at_the_end_holds_nothing_up(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(3))
    producer = transactional(desk)
    write(producer, topic, records(4, 3))
    assert stored(desk.read(desk.given(topic, (0, 0, 3))), desk.folder) == [0, 1, 2]
    producer.abort_transaction()


def test_a_compacted_topic_whose_tail_was_removed(desk: Desk) -> None:
    """The cleaner keeps the last value of each key alone, and never touches the last segment."""
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    topic = desk.broker.topic(partitions=1, config={**config, "delete.retention.ms": "0"})
    producer = desk.broker.producer
    for n in range(20):
        producer.produce(topic, record(n), key=b"same", partition=0)
        assert producer.flush(30) == 0
    first = desk.given(topic, (0, 0, 15))

    def low_records() -> int:
        plane = MemoryControlPlane(first)
        (desk.folder / "segments").mkdir(exist_ok=True)
        desk.read(first, plane)
        assert settled(plane) == [(0, 15)]
        producer.produce(topic, record(99), key=b"same", partition=0)  # rolls the segment
        assert producer.flush(30) == 0
        return total(plane).polled

    wait_for("the cleaner has removed all below the end", lambda: low_records() == 0, 60)


def test_retention_takes_a_part_meanwhile(desk: Desk) -> None:
    """Named as a gap; what exists is read, and the read ends."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(50))
    for future in desk.broker.admin.delete_records([TopicPartition(topic, 0, 20)]).values():
        future.result(30)
    plane = desk.read(desk.given(topic, (0, 0, 5), (0, 10, 30)))
    gaps = [r for p in plane.published for o in p.outcomes.values() for r in o.gap]
    assert sorted(gaps) == [(0, 5), (10, 20)]
    assert stored(plane, desk.folder) == list(range(20, 30))


def test_an_end_beyond_the_log_is_no_endless_wait(desk: Desk) -> None:
    """The broker has lost what it had when the read was submitted."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(5))
    with pytest.raises(SourceProblem, match="Submit it again with an end that exists"):
        desk.read(desk.given(topic, (0, 8, 10)))


def test_a_topic_that_was_made_again_is_another(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(5))
    with pytest.raises(SourceProblem, match="deleted and recreated"):
        desk.read(desk.given(topic, (0, 0, 5)), topic_id="of-the-old-one")


def test_the_publish_of_another_reader_comes_first(desk: Desk) -> None:
    """Its offsets are left out, and the rest is read again."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(100))
    given = desk.given(topic, (0, 0, 100))
    plane = _Overtaken(given, desk)
    desk.read(given, plane)
    assert stored(plane, desk.folder) == list(range(100))
    assert settled(plane) == [(0, 100)]
    assert total(plane).polled == 100


class _Overtaken(MemoryControlPlane):
    """Before the first publish, another reader of the same source has read a part from the middle."""

    def __init__(self, given: Assignment, desk: Desk) -> None:
        super().__init__(given)
        self._desk: Desk | None = desk

    def publish(self, number: int, request: PublishRequest) -> Any:
        desk, self._desk = self._desk, None
        if desk is not None:
            other = MemoryControlPlane(desk.given(self.prepared_assignment.spec.ioConfig.topic, (0, 30, 60)))
            desk.read(other.prepared_assignment, other)
            for publish in other.published:
                super().publish(number, publish.model_copy(update={"epoch": request.epoch}))
        return super().publish(number, request)


def test_a_partition_that_is_added_meanwhile_is_not_read(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, records(50))
    desk.broker.admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    knows_both = Producer({"bootstrap.servers": desk.broker.bootstrap})
    desk.broker.produce(topic, records(50, 50), partition=1, by=knows_both)
    assert stored(desk.read(desk.given(topic, (0, 0, 50))), desk.folder) == list(range(50))
