"""Which topic it is: by cluster id and topic id, since a topic made again under its old name starts at offset 0."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from ingestion.sources.base import ReadRefused, SourceProblem
from ingestion.sources.client_problems import missing_read_right
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.kafka.addresses import AddressPolicy, AddressProblem, AddressRefused, AddressUnknown
from ingestion.specs.kafka.client_messages import client_error_text
from ingestion.specs.kafka.properties import checked_client_config, quick_to_reconnect

TIMEOUT_S = 10.0
_GROUP_TIMEOUT_S = 3.0
# So soon a group deals out new partitions, and a client that saw a broker go finds where its partitions are now.
REFRESH_MS = 10_000


@dataclass(frozen=True)
class TopicIdentity:
    cluster_id: str
    topic_id: str


class Topic(Protocol):
    """Says which topic it is, now."""

    def identity(self) -> TopicIdentity | None:
        """None when it does not exist. Raises ``SourceProblem``."""

    def topic_id(self) -> str | None:
        """Its id alone, once the cluster is known; None when it does not exist. Raises ``SourceProblem``."""


@dataclass(frozen=True)
class KnownTopic:
    """See ``Topic``: the one that records came from, whatever has become of it since. Kafka is not asked."""

    known: TopicIdentity

    def identity(self) -> TopicIdentity:
        return self.known

    def topic_id(self) -> str:
        return self.known.topic_id


@dataclass(frozen=True)
class PinnedTopic:
    """See ``Topic``: the one with this id, or none.

    Another topic of the same name has other records at the same offsets.
    """

    topic: Topic
    name: str  # for the message
    pinned_id: str

    def identity(self) -> TopicIdentity:
        """Raises ``SourceProblem`` for good when it is gone."""
        identity = self.topic.identity()
        if identity is None:
            raise SourceProblem(f"Topic {self.name!r} was deleted, with its unread records.", permanent=True)
        if identity.topic_id != self.pinned_id:
            raise SourceProblem(
                f"Topic {self.name!r} was deleted and recreated: its id was {self.pinned_id} and is "
                f"{identity.topic_id}. The unread records of the old topic are lost.",
                permanent=True,
            )
        return identity

    def topic_id(self) -> str | None:
        return self.topic.topic_id()


@dataclass(frozen=True)
class ReadableTopic:
    """See ``Topic``: one that this login may read, in this group if it is to read in one.

    So a version that Kafka refuses never begins: what reads is ended for one that has begun, or could.
    """

    watch: TopicWatch
    group: str | None

    def identity(self) -> TopicIdentity | None:
        """Raises ``ReadRefused``, too."""
        identity = self.watch.identity()
        if identity is not None:
            self.watch.require_read(self.group)
        return identity

    def topic_id(self) -> str | None:
        return self.watch.topic_id()


@dataclass(frozen=True)
class LogBounds:
    """What a partition holds: ``[low, high)``, ``high`` being the end of what is committed; to ``log_end`` of all."""

    low: int
    high: int
    log_end: int

    def end(self, isolation: Isolation) -> int:
        """Where whoever reads so comes to the end."""
        return self.high if isolation == "read_committed" else self.log_end


class TopicWatch:
    """Asks Kafka for a topic's identity over one connection that is kept. Thread-safe after the first answer.

    ``policy``: what brokers it may connect to; those that they advertise are looked at before a topic is asked for.
    """

    def __init__(self, properties: Mapping[str, str], topic: str, policy: AddressPolicy) -> None:
        self._properties = properties
        self._topic = topic
        self._policy = policy
        self._errors: list[str] = []
        self._admin_client: AdminClient | None = None

    def identity(self) -> TopicIdentity | None:
        """The topic as it is now; None when it does not exist.

        Raises ``SourceProblem`` when Kafka does not answer, or may not be connected to.
        """
        try:
            cluster_id = checked_cluster(self._admin, self._topic, self._policy)
            topic_id = self.topic_id()
            return TopicIdentity(cluster_id, topic_id) if topic_id else None
        except KafkaException as error:
            raise SourceProblem(self._reason(error)) from None

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            self._admin_client = admin_client(checked_properties(self._properties, self._policy), self._errors)
        return self._admin_client

    def topic_id(self) -> str | None:
        """The topic's id now; None when it does not exist. Raises ``SourceProblem`` when Kafka does not answer."""
        try:
            described = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=TIMEOUT_S)
            return str(described[self._topic].result().topic_id)
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise SourceProblem(self._reason(error)) from None

    def require_read(self, group: str | None) -> None:
        """Nothing is said of brokers that do not say what a login may do, nor of a group that they can't find yet.

        Raises ``ReadRefused`` where this login may not read the topic, or not in the group; ``SourceProblem``.
        """
        described = self._admin.describe_topics(
            TopicCollection([self._topic]), include_authorized_operations=True, request_timeout=TIMEOUT_S
        )
        try:
            _check_read_right(described[self._topic].result().authorized_operations, f"topic {self._topic!r}")
        except KafkaException as error:
            raise SourceProblem(self._reason(error)) from None
        if group is not None:
            _check_read_right(self._allowed_in(group), f"group {group!r}")

    def _allowed_in(self, group: str) -> Collection[AclOperation]:
        futures = self._admin.describe_consumer_groups(
            [group], include_authorized_operations=True, request_timeout=_GROUP_TIMEOUT_S
        )
        try:
            return futures[group].result().authorized_operations or ()
        except KafkaException as error:
            # Who may read in a group may describe it.
            refused = error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
            return (AclOperation.DESCRIBE,) if refused else ()

    def partitions(self) -> list[int]:
        """The topic's partitions now; none when it does not exist. Raises ``SourceProblem``."""
        try:
            described = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=TIMEOUT_S)
            return sorted(p.id for p in described[self._topic].result().partitions)
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return []
            raise SourceProblem(self._reason(error)) from None

    def bounds(self, partitions: Iterable[int]) -> dict[int, LogBounds]:
        """What these partitions hold now. Raises ``SourceProblem``."""
        topic_partitions = [TopicPartition(self._topic, p) for p in partitions]
        if not topic_partitions:
            return {}
        try:
            lows = self._listed(topic_partitions, OffsetSpec.earliest())
            highs = self._listed(topic_partitions, OffsetSpec.latest())
            written = self._listed(topic_partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        except KafkaException as error:
            raise SourceProblem(self._reason(error)) from None
        return {p: LogBounds(lows[p], highs[p], written[p]) for p in lows}

    def first_since(self, partitions: Iterable[int], timestamp_ms: int, isolation: Isolation) -> dict[int, int]:
        """By partition, the offset of the first record of this time or later, which a reader with this isolation level
        may read; left out: there is none. Raises ``SourceProblem``.
        """
        topic_partitions = [TopicPartition(self._topic, p) for p in partitions]
        if not topic_partitions:
            return {}
        try:
            found = self._listed(
                topic_partitions, OffsetSpec.for_timestamp(timestamp_ms), IsolationLevel[isolation.upper()]
            )
        except KafkaException as error:
            raise SourceProblem(self._reason(error)) from None
        return {p: offset for p, offset in found.items() if offset >= 0}

    def _listed(
        self,
        partitions: list[TopicPartition],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[int, int]:
        specs = dict.fromkeys(partitions, spec)
        futures = self._admin.list_offsets(specs, isolation_level=isolation, request_timeout=TIMEOUT_S)
        return {p.partition: future.result().offset for p, future in futures.items()}

    def _reason(self, error: KafkaException) -> str:
        if self._admin_client is not None:
            self._admin_client.poll(0)  # the causes come in while it is asked
        text = f"Kafka does not answer: {client_error_text(error.args[0])}"
        return f"{text} ({self._errors[-1]})" if self._errors else text


def _check_read_right(allowed: Collection[AclOperation] | None, resource: str) -> None:
    if allowed and AclOperation.READ not in allowed and AclOperation.ALL not in allowed:
        raise ReadRefused(f"{missing_read_right(resource)}.")


def checked_properties(properties: Mapping[str, str], policy: AddressPolicy) -> dict[str, str]:
    """The properties for a client that connects to the bootstrap servers now. Raises ``SourceProblem``."""
    try:
        return checked_client_config(properties, policy)
    except AddressProblem as problem:
        raise SourceProblem(str(problem)) from None


def checked_cluster(admin: AdminClient, topic: str, policy: AddressPolicy, timeout_s: float = TIMEOUT_S) -> str:
    """The cluster's id, once its brokers' addresses are allowed: one that may be spoken to can name others.

    Metadata come from a bootstrap server; all other questions may go to a broker that it has named. A name that can't
    be resolved is left to the client. Raises ``SourceProblem``, ``KafkaException``.
    """
    cluster = admin.list_topics(topic, timeout=timeout_s)
    for broker in cluster.brokers.values():
        try:
            policy.resolve(broker.host, broker.port)
        except AddressUnknown:
            continue
        except AddressRefused as refused:
            raise SourceProblem(f"Kafka's broker {broker.id} is advertised as {refused}") from None
    return str(cluster.cluster_id)


def admin_client(properties: Mapping[str, str], errors: list[str]) -> AdminClient:
    """A client of admissible properties that keeps the last few causes of connection trouble in ``errors``.

    Raises ``SourceProblem``.
    """

    def on_error(error: object) -> None:
        errors[:] = [*errors[-2:], str(error)]

    config = {**quick_to_reconnect(properties), "topic.metadata.refresh.interval.ms": REFRESH_MS, **properties}
    try:
        return AdminClient({**config, "error_cb": on_error, "log_level": 0})
    except KafkaException as error:
        raise SourceProblem(f"Kafka's client refuses its properties: {error.args[0].str()}") from None


def configure_group(properties: Mapping[str, str], io_config: ShareGroupIOConfig, policy: AddressPolicy) -> None:
    """Set the share group's dynamic configuration, before the first poll: a new group starts at latest.

    Raises ``SourceProblem`` with the broker's reason (for example a lock duration outside its bounds).
    """
    errors: list[str] = []
    admin = admin_client(checked_properties(properties, policy), errors)
    try:
        checked_cluster(admin, io_config.topic, policy)
        _alter_group(admin, io_config.groupId, *io_config.group_settings_to_try(datetime.now(UTC)))
    except KafkaException as error:
        admin.poll(0)  # the causes come in while it is asked
        cause = f" ({errors[-1]})" if errors else ""
        if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            cause = ". This login lacks the right ALTER_CONFIGS on the group"
        raise SourceProblem(f"Share group {io_config.groupId!r}: {error.args[0].str()}{cause}") from None


def _alter_group(admin: AdminClient, group: str, settings: Mapping[str, str], *others: Mapping[str, str]) -> None:
    """Set these, or the next of ``others`` if the broker takes one of them for invalid. Raises ``KafkaException``."""
    entries = [ConfigEntry(n, v, incremental_operation=AlterConfigOpType.SET) for n, v in settings.items()]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    try:
        for future in admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S).values():
            future.result()
    except KafkaException as error:
        if not others or error.args[0].code() != KafkaError.INVALID_CONFIG:
            raise
        _alter_group(admin, group, *others)
