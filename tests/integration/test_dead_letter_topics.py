"""A share group's dead-letter topic (KIP-1191) on a real broker: what Kafka writes there, and when nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from controlplane.connections.dead_letters import DeadLetterTopic, dead_letter_topic
from controlplane.connections.share_group_config import share_group_config
from controlplane.quarantine.dead_letter_origins import Origin, origin_of
from ingestion.sources.base import ACCEPT, REJECT
from ingestion.sources.share_group import ShareGroupSource
from ingestion.sources.topic import configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.broker import Broker
from tests.support.formats import HERE
from tests.support.records import numbered
from tests.support.waiting import wait_for

REJECTED = 3  # an offset
CLIENT_REJECT = "Offset rejected by client."  # of Kafka
ALLOWED = {"errors.deadletterqueue.group.enable": "true"}


def configured(broker: Broker, topic: str, dead: str, **more: Any) -> ShareGroupIOConfig:
    """The ioConfig of a group whose settings are on the broker."""
    group = {"recordLockDurationMs": 3000, "deadLetterTopic": dead, **more}
    spec = parse_task_spec(broker.spec(topic, groupConfig=group, consumersPerIndexer=1)).spec.ioConfig
    assert isinstance(spec, ShareGroupIOConfig)
    configure_group({"bootstrap.servers": broker.bootstrap}, spec, HERE)
    return spec


def shown(broker: Broker, spec: ShareGroupIOConfig) -> DeadLetterTopic | None:
    """What the group's page and REST say."""
    properties = {"bootstrap.servers": broker.bootstrap}
    return dead_letter_topic(properties, share_group_config(properties, spec.topic, spec.groupId))


def reject_one(broker: Broker, spec: ShareGroupIOConfig) -> None:
    """Read all records as an indexer does, and reject one of them."""
    source = ShareGroupSource({"bootstrap.servers": broker.bootstrap}, spec, "one")
    source.open()
    try:
        batch = wait_for("a batch", lambda: source.poll(1.0), 60)
        source.acknowledge(batch, np.where(np.arange(len(batch)) == REJECTED, REJECT, ACCEPT))
        source.pause()  # what was acknowledged is sent all the same
        wait_for("it is settled", lambda: source.leases.rejected == 1, 30)
    finally:
        source.close()


def letters(broker: Broker, topic: str) -> list[Any]:
    """The topic's records, as soon as there are some."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": "false"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return wait_for("dead letters", lambda: consumer.consume(10, 1.0), 30)
    finally:
        consumer.close()


@pytest.mark.parametrize("copies", [True, False])
def test_a_rejected_record_lies_there_with_its_origin(broker: Broker, copies: bool) -> None:
    """The headers are those of KIP-1191. The record itself is there if the spec asks for a copy."""
    topic, dead = broker.topic(partitions=1), broker.topic("dlq.dead", partitions=1, config=ALLOWED)
    records = list(numbered(0, 50))
    broker.produce(topic, records)
    spec = configured(broker, topic, dead, deadLetterCopiesRecord=copies)
    assert shown(broker, spec) == DeadLetterTopic(dead, records=0)
    reject_one(broker, spec)
    [letter] = letters(broker, dead)
    assert dict(letter.headers())["__dlq.errors.delivery.count"] == b"1"
    assert origin_of(letter.headers()) == Origin("Kafka", topic, 0, REJECTED, CLIENT_REJECT, spec.groupId, 1)
    assert letter.value() == (records[REJECTED] if copies else None)
    assert shown(broker, spec) == DeadLetterTopic(dead, records=1)


def test_a_group_without_one_shows_none(broker: Broker) -> None:
    """An empty name ends what another setting began."""
    topic = broker.topic(partitions=1)
    dead = broker.topic("dlq.dead", partitions=1, config=ALLOWED)
    assert shown(broker, configured(broker, topic, dead)) is not None
    assert shown(broker, configured(broker, topic, "")) is None


def test_a_topic_that_kafka_does_not_write_to_says_why(broker: Broker) -> None:
    """The broker itself says it in its log alone, and archives the records all the same."""
    topic = broker.topic(partitions=1)
    unlike = shown(broker, configured(broker, topic, broker.topic("dead", partitions=1, config=ALLOWED)))
    assert unlike is not None and "begin with 'dlq.'" in unlike.problem
    missing = shown(broker, configured(broker, topic, f"dlq.{topic}"))
    assert missing is not None and missing.problem.startswith("There is no such topic")
    closed = shown(broker, configured(broker, topic, broker.topic("dlq.dead", partitions=1)))
    assert closed is not None and (closed.records, "does not allow it" in closed.problem) == (0, True)
