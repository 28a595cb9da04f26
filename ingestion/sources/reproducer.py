"""Kept records produced to their topic again, each with a header that says where it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Producer

from ingestion.sources.base import SourceProblem
from ingestion.sources.topic import TopicWatch, checked_properties
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.replays import KeptRecord, ProducedRecord

ORIGIN_HEADER = "headgate.replayed-from"  # value: topic/partition/offset
DELIVERY_S = 60.0


@dataclass
class Delivered:
    """What the broker said of some records."""

    records: list[ProducedRecord] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Reproducer:
    """One producer for a topic, with a spec's properties and under its address policy. Close it at the end.

    Raises ``SourceProblem`` when Kafka does not answer, may not be connected to, or has no such topic.
    """

    def __init__(self, properties: Mapping[str, str], topic: str, policy: AddressPolicy) -> None:
        watch = TopicWatch(properties, topic, policy)
        if watch.identity() is None:  # looks at the brokers' addresses, too
            raise SourceProblem(f"Topic {topic!r} does not exist.")
        self._topic = topic
        self._partitions = set(watch.partitions())
        config = {
            **checked_properties(properties, policy),
            "enable.idempotence": True,
            "delivery.timeout.ms": int(DELIVERY_S * 1000),
            "error_cb": lambda error: None,
            "log_level": 0,
        }
        try:
            self._producer = Producer(config)
        except KafkaException as error:
            raise SourceProblem(f"Kafka's client refuses its properties: {error.args[0].str()}") from None

    def produce(self, records: Sequence[KeptRecord]) -> Delivered:
        """Produce all of them and wait until the broker has confirmed or refused each; blocks for a minute at most."""
        delivered = Delivered()
        for record in records:
            try:
                self._send(record, delivered)
            except (KafkaException, BufferError) as error:
                delivered.refused.append(_describe_refusal(record, error))
        self._producer.flush(DELIVERY_S + 5)
        return delivered

    def _send(self, record: KeptRecord, delivered: Delivered) -> None:
        def confirmed(error: Any, message: Any) -> None:
            if error is not None:
                delivered.refused.append(_describe_refusal(record, error))
            else:
                where = ProducedRecord(number=record.number, partition=message.partition(), offset=message.offset())
                delivered.records.append(where)

        origin = (ORIGIN_HEADER, f"{self._topic}/{record.partition}/{record.offset}".encode())
        # Where it was, unless the topic was made again with fewer partitions.
        where = {"partition": record.partition} if record.partition in self._partitions else {}
        self._producer.produce(
            self._topic,
            value=record.payload,
            key=record.key,
            headers=[*record.headers, origin],
            on_delivery=confirmed,
            **where,
        )
        self._producer.poll(0)


def _describe_refusal(record: KeptRecord, error: Any) -> str:
    return f"partition {record.partition}, offset {record.offset}: {error}"
