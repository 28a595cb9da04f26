"""Topics for a real Druid to read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.druid_kafka import Record


def written(broker: str, records: Sequence[Record]) -> str:
    """The name of a new topic of one partition with these records."""
    topic = f"recorded-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": broker})  # kept: with it goes what it was asked for
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        made.result(30)
    produce(broker, topic, records)
    return topic


def produce(broker: str, topic: str, records: Sequence[Record]) -> None:
    """In their order."""
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 0})
    for record in records:
        headers = list(record.headers)
        producer.produce(topic, record.value, record.key, headers=headers, timestamp=record.time_ms)
    if producer.flush(30):
        raise TimeoutError(f"{broker} has not taken what was sent to {topic}")
