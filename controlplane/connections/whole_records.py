"""A topic's records, whole: the next ones of some ranges, and those at places. For workers: payloads are large."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from controlplane.connections.kafka import KafkaProblem, is_group_refusal, measured, record_reader
from ingestion.specs.kafka.providers import Value
from ingestion.specs.messages.protocol import Header

READ_S = 10.0
MAX_BYTES = 16 * 1024 * 1024  # of payloads, beside the last record's
_BUFFERED = {"queued.max.messages.kbytes": 16 * 1024, "fetch.wait.max.ms": 100}


@dataclass(frozen=True)
class WholeRecord:
    """A record as Kafka holds it."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    payload: bytes | None
    headers: list[Header]


@dataclass
class ReadRecords:
    """The records in the order of their partitions' offsets, and at which offset of each partition reading goes on."""

    positions: dict[int, int]
    records: list[WholeRecord] = field(default_factory=list)


@measured
def read_records(
    properties: Mapping[str, Value], topic: str, within: Mapping[int, tuple[int, int]], most: int
) -> ReadRecords:
    """The first committed records of the partitions' ranges ``[start, end)``, ``most`` in all.

    It also ends after some seconds or mebibytes; then positions lie below the ends. Raises ``KafkaProblem`` where the
    topic can't be read, or nothing comes in.
    """
    found = ReadRecords({partition: start for partition, (start, _) in within.items()})
    waiting = {partition: end for partition, (start, end) in within.items() if start < end}
    consumer = record_reader(properties, topic, {"isolation.level": "read_committed", **_BUFFERED})
    deadline, size, heard = monotonic() + READ_S, 0, not waiting
    try:
        consumer.assign([TopicPartition(topic, partition, within[partition][0]) for partition in waiting])
        while waiting and len(found.records) < most and size < MAX_BYTES:
            message = _next_message(consumer, topic, deadline)
            if message is None:
                break
            heard, partition = True, message.partition() or 0
            end, offset = waiting.get(partition), message.offset() or 0
            if end is None:
                continue
            if message.error() is None and offset < end:
                found.records.append(_whole(message, offset))
                found.positions[partition], size = offset + 1, size + len(message.value() or b"")
            if message.error() is not None or offset + 1 >= end:
                found.positions[partition] = waiting.pop(partition)
                consumer.pause([TopicPartition(topic, partition)])
    finally:
        consumer.close()
    if not heard:
        raise KafkaProblem(f"Topic {topic!r} did not answer within {READ_S:.0f} s")
    return found


@measured
def records_at(
    properties: Mapping[str, Value], topic: str, places: Collection[tuple[int, int]]
) -> dict[tuple[int, int], WholeRecord]:
    """By partition and offset, the records at these places that the topic still has. Raises ``KafkaProblem``.

    ``places``: in the topic, as far as is known.
    """
    if not places:
        return {}
    found: dict[tuple[int, int], WholeRecord] = {}
    consumer = record_reader(properties, topic, {"isolation.level": "read_committed", **_BUFFERED})
    try:
        for partition, offset in places:
            consumer.assign([TopicPartition(topic, partition, offset)])
            deadline = monotonic() + READ_S
            message = _next_message(consumer, topic, deadline)
            while message is not None and (message.partition(), message.offset() or 0) < (partition, offset):
                message = _next_message(consumer, topic, deadline)  # it was on its way before
            if message is None:
                raise KafkaProblem(f"Partition {partition} of topic {topic!r} did not answer within {READ_S:.0f} s")
            if message.error() is None and (message.partition(), message.offset()) == (partition, offset):
                found[partition, offset] = _whole(message, offset)
    finally:
        consumer.close()
    return found


def _next_message(consumer: Consumer, topic: str, deadline: float) -> Message | None:
    """A record, or the end of a partition; None: neither came in time. Raises ``KafkaProblem``."""
    while (left_s := deadline - monotonic()) > 0:
        message = consumer.poll(left_s)
        if message is None or is_group_refusal(message):
            continue
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaProblem(f"Topic {topic!r} can't be read: {error.str()}")
        return message
    return None


def _whole(message: Message, offset: int) -> WholeRecord:
    kind, at = message.timestamp()
    return WholeRecord(
        message.partition() or 0,
        offset,
        None if kind == TIMESTAMP_NOT_AVAILABLE else at,
        message.key(),
        message.value(),
        _headers(message),
    )


def _headers(message: Message) -> list[Header]:
    """None of a record with a header's name that is not UTF-8: the client can't read them."""
    try:
        return [(name, value) for name, value in message.headers() or ()]
    except UnicodeDecodeError:
        return []
