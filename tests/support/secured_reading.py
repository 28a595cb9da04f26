"""Whether a login reads from a secured broker."""

from __future__ import annotations

import uuid
from typing import Any

from confluent_kafka import Consumer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from controlplane.connections import kafka
from controlplane.connections.client_properties import client_properties
from ingestion.specs.kafka.properties import checked_client_config
from tests.support.formats import HERE
from tests.support.secured_kafka import Secured
from tests.support.waiting import wait_for


def check_reads(secured: Secured, properties: dict[str, Any]) -> None:
    """The control plane sees the topic's end, and a consumer that an indexer would make reads its records."""
    seen = kafka.topic_offsets(properties, secured.topic)
    assert seen is not None and seen.end_offsets == {0: 10}
    config = checked_client_config(client_properties(properties), HERE)
    consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(secured.topic, 0, 0)])
        values: list[bytes] = []

        def ten() -> bool:
            values.extend(m.value() for m in consumer.consume(10, 1.0))
            return len(values) >= 10

        wait_for("ten records", ten)
        assert values == [str(n).encode() for n in range(10)]
    finally:
        consumer.close()


def check_shares(secured: Secured, properties: dict[str, Any]) -> None:
    """A share consumer of a new group reads all of its records."""
    config = checked_client_config(client_properties(properties), HERE)
    group = f"group-{uuid.uuid4().hex[:8]}"
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient(config)
    admin.incremental_alter_configs([resource])[resource].result(30)
    consumer = ShareConsumer({**config, "group.id": group})
    try:
        consumer.subscribe([secured.topic])
        values: set[bytes] = set()

        def ten() -> bool:
            values.update(m.value() for m in consumer.poll(1.0))
            return len(values) == 10

        wait_for("ten records", ten)
    finally:
        consumer.close()
