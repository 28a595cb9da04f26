"""A Kafka broker alone, and hands to use it: for tests that need no web, worker or beat."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from controlplane.embedded.kafka import Kafka
from tests.support.waiting import PATIENCE, wait_for

BROKER = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.size": "1000",
    "log.cleaner.backoff.ms": "3000",  # each round costs an idle broker 20 ms
}


class Broker:
    """``kafka`` runs already; whoever started it stops it."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        quiet = {"bootstrap.servers": self.bootstrap, "log_level": 0}  # of a broker that is away they would never stop
        self.producer = Producer({**quiet, "linger.ms": 5})
        self.admin = AdminClient(quiet)

    @property
    def bootstrap(self) -> str:
        return self.kafka.bootstrap

    def topic(self, prefix: str = "topic", partitions: int = 4, config: dict[str, str] | None = None) -> str:
        """A new topic's name."""
        return self.make_topic(f"{prefix}-{uuid.uuid4().hex[:8]}", partitions, config)

    def make_topic(self, name: str, partitions: int = 4, config: dict[str, str] | None = None) -> str:
        """Make it, and wait until the producer has forgotten that one of this name was deleted, if one was."""
        self.admin.create_topics([NewTopic(name, partitions, config=config or {})])[name].result(30)

        def known() -> bool:
            topic = self.producer.list_topics(name, 10).topics[name]
            return topic.error is None and len(topic.partitions) == partitions

        wait_for(f"the producer knows {name}", known, 30)
        return name

    def produce(self, topic: str, payloads: Iterable[bytes | None], partition: int = -1, by: Any = None) -> int:
        """Send ``by`` a producer of its own or this one, and wait until the broker has them; returns how many."""
        count, producer = 0, by or self.producer
        for payload in payloads:
            while True:
                try:
                    producer.produce(topic, value=payload, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            count += 1
        assert producer.flush(60 * PATIENCE) == 0
        return count

    def configure_group(self, group: str, **settings: Any) -> None:
        """A group's own settings in Kafka; ``_`` for ``.``."""
        entries = [
            ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(30)

    def spec(self, topic: str, datasource: str | None = None, **io_config: Any) -> dict[str, Any]:
        """A share-group spec for records of ``numbered``; a short lock, so that faults show soon."""
        lock = io_config.pop("lock_ms", 5000)
        limit = io_config.pop("delivery_limit", 10)
        return {
            "type": "index_kafka_share_group",
            "dataSchema": {
                "dataSource": datasource or topic,
                "timestampSpec": {"column": "time", "format": "auto"},
                "dimensionsSpec": {"useSchemaDiscovery": True},
                "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
            },
            "ioConfig": {
                "topic": topic,
                "groupId": f"group-{topic}",
                "consumerProperties": {"bootstrap.servers": self.bootstrap},
                "inputFormat": {"type": "json"},
                "pollTimeout": 500,
                "consumersPerIndexer": 2,
                "groupConfig": {"recordLockDurationMs": lock, "deliveryCountLimit": limit},
                **io_config,
            },
        }

    def kafka_spec(
        self, topic: str, datasource: str | None = None, tuning: dict[str, Any] | None = None, **io_config: Any
    ) -> dict[str, Any]:
        """A spec with stored offsets for records of ``numbered``; it begins at once, and hands off every second."""
        group = self.spec(topic, datasource)
        shared = {k: group["ioConfig"][k] for k in ("topic", "consumerProperties", "inputFormat")}
        return {
            "type": "kafka",
            "dataSchema": group["dataSchema"],
            "ioConfig": {**shared, "useEarliestOffset": True, "startDelay": "PT0S", **io_config},
            "tuningConfig": {"intermediateHandoffPeriod": "PT1S", **(tuning or {})},
        }
