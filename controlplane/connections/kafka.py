"""What the control plane asks Kafka: does the topic exist, by which id, where does its log begin and end.

Every call has a deadline in seconds and raises ``KafkaProblem`` with a reason that a user can act on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ingestion.specs.kafka_properties import librdkafka_properties

TIMEOUT_S = 5.0


class KafkaProblem(Exception):
    """Kafka can't be reached or refuses."""


@dataclass(frozen=True)
class TopicOffsets:
    """A topic as it is now. ``starts`` and ``ends``: partition → log start offset and end offset (exclusive).

    ``undecided``: how many offsets lie beyond those ends, from the first transaction on that is still open.
    """

    topic_id: str
    starts: dict[int, int]
    ends: dict[int, int]
    undecided: int = 0


def topic_offsets(properties: Mapping[str, str], topic: str) -> TopicOffsets | None:
    """The topic's id and offsets; None when there is no such topic. ``ends`` is the end of what is committed."""
    with _admin(properties) as (admin, causes):
        try:
            described = admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT_S)[topic].result()
            partitions = [TopicPartition(topic, p.id) for p in described.partitions]
            starts = _listed(admin, partitions, OffsetSpec.earliest())
            ends = _listed(admin, partitions, OffsetSpec.latest())
            written = _listed(admin, partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise KafkaProblem(_reason(error, causes)) from None
    undecided = sum(max(0, end - ends[p]) for p, end in written.items())
    return TopicOffsets(str(described.topic_id), starts, ends, undecided)


def _listed(
    admin: AdminClient,
    partitions: list[TopicPartition],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[int, int]:
    futures = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=TIMEOUT_S)
    return {p.partition: future.result().offset for p, future in futures.items()}


def holds_records(properties: Mapping[str, str], topic: str, partition: int, start: int, end: int) -> bool:
    """Whether a committed record lies in ``[start, end)`` of the partition: markers and aborted records are none."""
    config = {
        **librdkafka_properties(properties),
        "group.id": "headgate-look",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "error_cb": lambda error: None,
    }
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        message = consumer.poll(TIMEOUT_S)
        if message is None:
            raise KafkaProblem(f"{topic} partition {partition} did not answer within {TIMEOUT_S:.0f} s")
        return message.error() is None and message.offset() < end
    finally:
        consumer.close()


@contextmanager
def _admin(properties: Mapping[str, str]) -> Iterator[tuple[AdminClient, list[str]]]:
    causes: list[str] = []
    config = {
        **librdkafka_properties(properties),
        "error_cb": lambda error: causes.append(str(error.str())),
        "socket.connection.setup.timeout.ms": 4000,
        "log_level": 0,
    }
    try:
        yield AdminClient(config), causes
    except KafkaException as error:
        raise KafkaProblem(_reason(error, causes)) from None


def _reason(error: KafkaException, causes: list[str]) -> str:
    text = str(error.args[0].str())
    return f"{text}: {causes[0]}" if causes and causes[0] not in text else text
