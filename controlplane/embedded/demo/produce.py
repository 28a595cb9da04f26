"""Writing the demo's records into topics, once: a second run adds only what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.embedded.errors import DemoFailed
from controlplane.embedded.home import command

PARTITIONS = 4
TIMEOUT_S = 30.0
_NO_LEADER_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


def ensure_topic(bootstrap: str, topic: str) -> None:
    """Makes the topic with four partitions when it is missing. Raises DemoFailed when it has another number."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise DemoFailed(f"The topic {topic} could not be made: {error}") from error
    partitions = _partitions(admin, topic)
    if partitions != PARTITIONS:
        raise DemoFailed(
            f"The topic {topic} has {partitions} partitions; the demo needs one with {PARTITIONS}. {_ADVICE}"
        )


def _partitions(admin: AdminClient, topic: str) -> int:
    """How many it has. A broker learns of a topic that was just made a moment after the controller."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        metadata = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        if metadata.error is None:
            return len(metadata.partitions)
        if metadata.error.code() not in _NO_LEADER_YET or time.monotonic() > end:
            raise DemoFailed(f"The topic {topic} could not be read: {metadata.error}")
        admin.poll(0.1)


def records_by_partition(bootstrap: str, topic: str) -> list[int]:
    """How many records each partition was given. Raises DemoFailed when some were deleted since."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "headgate-demo-count"})
    try:
        bounds = [_bounds(consumer, TopicPartition(topic, partition)) for partition in range(PARTITIONS)]
    finally:
        consumer.close()
    if any(low for low, _ in bounds):
        raise DemoFailed(f"The topic {topic} has lost its first records. {_ADVICE}")
    return [high for _, high in bounds]


def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """First and next offset. A topic that was just made has no leader yet, which the client does not wait for."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
            return low, high
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() > end:
                raise DemoFailed(f"The topic {partition.topic} could not be read: {error}") from error
            consumer.poll(0.1)  # it is assigned nothing: this only lets the client ask who leads


def produce(
    bootstrap: str, topic: str, records: Iterable[bytes], total: int, on_progress: Callable[[int], None]
) -> None:
    """Nothing is produced when the topic holds `total` records. Else record n goes to partition n modulo 4, so what a
    partition holds already is the beginning of its share: that is passed over. `on_progress` is told how many are in.

    Raises DemoFailed when the topic does not hold `total` records at the end.
    """
    present = records_by_partition(bootstrap, topic)
    if sum(present) == total:
        return on_progress(total)
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    # Idempotent, so that a retry inside the client neither repeats nor reorders.
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 50, "log_level": 3})
    count = 0
    for number, record in enumerate(records):
        offset, partition = divmod(number, PARTITIONS)
        count += 1
        if offset >= present[partition]:
            _produce_record(producer, topic, partition, record, on_delivery)
        if count % 2000 == 0:
            producer.poll(0)
            on_progress(count)
    left = producer.flush(TIMEOUT_S)
    if left or failures:
        raise DemoFailed(f"Kafka did not take all records of {topic}: {failures[0] if failures else f'{left} left'}")
    on_progress(count)
    stored = sum(records_by_partition(bootstrap, topic))
    if stored != total:
        raise DemoFailed(f"The topic {topic} holds {stored} records instead of the demo's {total}. {_ADVICE}")


def _produce_record(
    producer: Producer,
    topic: str,
    partition: int,
    record: bytes,
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    while True:
        try:
            return producer.produce(topic, record, partition=partition, on_delivery=on_delivery)
        except BufferError:  # its queue is full
            producer.poll(0.5)


_ADVICE = f"{command('clean')} starts again from nothing."
