"""Which topics are read, by their ids: one that was made again has the name of the old one and offsets of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headgate.errors import DataLoss, ReaderFailed
from headgate.sharegroup.ledger import Ledger

REQUEST_TIMEOUT_S = 15.0
CHECK_EVERY_S = 2.0


class TopicIds:
    """Ids by name. With ``fail_on_data_loss`` a topic that was made again is an error, else the new one is read."""

    def __init__(self, config: dict[str, Any], topics: Sequence[str], ledger: Ledger, fail_on_data_loss: bool) -> None:
        self._admin = AdminClient({**config, "error_cb": self._on_error})
        self._client_problem = ""  # what the client last said of its connections
        self._config = config
        self._topics = list(topics)
        self._ledger = ledger
        self._fail = fail_on_data_loss
        self._lock = threading.Lock()
        self.refresh()

    def id_of(self, topic: str) -> str:
        """The id that it had when it was last looked at."""
        return self._ledger.topics[topic]

    def refresh(self) -> bool:
        """Ask Kafka; False when it is away, where it has answered before. Raises ``DataLoss`` and ``ReaderFailed``."""
        with self._lock:
            return self._describe_topics()

    def _describe_topics(self) -> bool:
        futures = self._admin.describe_topics(TopicCollection(self._topics), request_timeout=REQUEST_TIMEOUT_S)
        for topic, future in futures.items():
            try:
                topic_id = str(
                    future.result(2 * REQUEST_TIMEOUT_S).topic_id
                )  # Kafka's own error comes after ``REQUEST_TIMEOUT_S``
            except KafkaException as error:
                is_away = error.args[0].retriable() or error.args[0].code() < 0
                if is_away and topic in self._ledger.topics:
                    return False
                raise ReaderFailed(self._explain(topic, error.args[0], is_away)) from None
            known_id = self._ledger.topics.get(topic, topic_id)
            if known_id != topic_id and self._fail:
                raise DataLoss(
                    f"topic {topic} was deleted and made again: what was not read of the old one is lost. "
                    "Set failOnDataLoss to false to read the new one"
                )
            self._ledger.topics[topic] = topic_id
        return True

    def _explain(self, topic: str, error: Any, is_away: bool) -> str:
        self._admin.poll(0)
        if not is_away:
            return f"topic {topic} can't be read: {error.str()}"
        servers = self._config["bootstrap.servers"]
        return (
            f"Kafka at {servers} can't be asked ({self._client_problem or error.str()}): are kafka.bootstrap.servers "
            "right, and kafka.security.protocol and kafka.sasl.*, where it wants a login?"
        )

    def _on_error(self, error: Any) -> None:
        self._client_problem = str(error.str())

    def end_offsets(self) -> dict[tuple[str, int], int]:
        """The end offset of each partition that holds records."""
        consumer = Consumer({**self._config, "group.id": "unused", "enable.auto.commit": False})
        try:
            ends = {}
            for topic in self._topics:
                for partition in consumer.list_topics(topic, REQUEST_TIMEOUT_S).topics[topic].partitions:
                    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), REQUEST_TIMEOUT_S)
                    if high > low:
                        ends[topic, partition] = high
            return ends
        finally:
            consumer.close()

    def delivery_limit(self, group: str) -> int:
        """How often the group lets a record be delivered; 5, the broker's default, when it can't be asked."""
        try:
            resource = ConfigResource(ResourceType.GROUP, group)
            (future,) = self._admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S).values()
            return int(future.result(REQUEST_TIMEOUT_S)["share.delivery.count.limit"].value)
        except (KafkaException, KeyError, TypeError, ValueError):
            return 5

    def begin_at(self, group: str, reset: str) -> None:
        """Where a group that has read nothing yet begins."""
        entry = ConfigEntry("share.auto.offset.reset", reset, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        try:
            for future in self._admin.incremental_alter_configs([resource], request_timeout=REQUEST_TIMEOUT_S).values():
                future.result(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise ReaderFailed(
                f"groupAutoOffsetReset could not be set for {group}: {error.args[0].str()}. It needs the right to alter"
                " the group's configuration; or set share.auto.offset.reset with kafka-configs.sh and leave it out"
            ) from None
