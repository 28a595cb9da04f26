"""What the control plane asks Kafka: does the topic exist, by which id, where does its log begin and end.

Every call takes a spec's properties with their secrets, has a deadline in seconds, and raises ``KafkaProblem`` with a
reason that a user can act on. Addresses are checked before each, and those that the brokers advertise before any of
them is asked: names are resolved once more by the client, so rules of the network remain the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from time import monotonic
from typing import ParamSpec, TypeVar

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)
from django.conf import settings
from django.utils import timezone

from controlplane.common.measures import FAILED, KAFKA_REQUESTS, timed
from controlplane.connections import rights
from controlplane.connections.client_properties import PropertyProblem, client_properties
from controlplane.connections.probe_report import Clock, Failed
from ingestion.specs.kafka.addresses import AddressProblem, AddressRefused, AddressUnknown
from ingestion.specs.kafka.client_messages import client_error_text
from ingestion.specs.kafka.msk_login import with_token
from ingestion.specs.kafka.properties import checked_client_config
from ingestion.specs.kafka.providers import Value

TIMEOUT_S = 5.0
INTERNAL = "__"  # Kafka's own topics begin with it
P = ParamSpec("P")
A = TypeVar("A")


class KafkaProblem(Exception):
    """Kafka can't be reached or refuses."""


class KafkaRefuses(KafkaProblem):
    """It answers, and this login lacks a right."""


@dataclass(frozen=True)
class TopicOffsets:
    """A topic as it is now: partition → log start offset, and end offset (exclusive) of what may be read."""

    topic_id: str
    start_offsets: dict[int, int]
    end_offsets: dict[int, int]
    log_ends: dict[int, int]  # the end of all there is, behind transactions that are still open
    cluster_id: str = ""
    observed_at: datetime | None = None  # before Kafka was asked: all that it held then lies below ``log_ends``
    members: tuple[tuple[str, str], ...] = ()  # of a consumer group, who reads it: client id and host
    members_problem: str = ""  # why Kafka does not say who they are

    @property
    def uncommitted(self) -> int:
        """How many offsets lie beyond the ends, from the first transaction on that is still open."""
        return sum(max(0, end - self.end_offsets[p]) for p, end in self.log_ends.items())

    def for_isolation(self, isolation: str) -> TopicOffsets:
        """What a reader with this isolation level may read: uncommitted records too, if it reads them at once."""
        return self if isolation == "read_committed" else replace(self, end_offsets=self.log_ends)


def measured(ask: Callable[P, A]) -> Callable[P, A]:
    """Of a question to Kafka, by its name: how long the answer takes, and how it ends."""

    @wraps(ask)
    def timed_ask(*args: P.args, **kwargs: P.kwargs) -> A:
        with timed(KAFKA_REQUESTS, ask.__name__, _outcome_of):
            return ask(*args, **kwargs)

    return timed_ask


def _outcome_of(error: Exception) -> str:
    return "refused" if isinstance(error, KafkaRefuses) else FAILED


@measured
def partition_count(properties: Mapping[str, Value], topic: str) -> int | None:
    """How many partitions the topic has; None when there is no such topic."""
    with topic_admin(properties, topic) as (admin, causes, _):
        try:
            future = admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT_S)[topic]
            return len(future.result().partitions)
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise _problem(error, admin, causes, topic) from None


@measured
def check_rights(properties: Mapping[str, Value], topic: str, group: str) -> None:
    """Raise ``KafkaRefuses`` where the brokers say that this login may not read the topic, or not in the group.

    ``group``: empty where none is joined.
    """
    with topic_admin(properties, topic) as (admin, _, _):
        try:
            rights.check_readable(admin, topic, Clock(TIMEOUT_S))
            if group:
                rights.check_joinable(admin, group, Clock(TIMEOUT_S))
        except Failed as failed:
            if failed.cause == "authorisation":
                raise KafkaRefuses(f"{failed.message} {failed.advice}") from None


@measured
def topic_names(properties: Mapping[str, Value]) -> list[str]:
    """Every topic that this login may describe, by name, but for Kafka's own."""
    with _connect(properties, None) as (_, _, metadata):
        return sorted(n for n, topic in metadata.topics.items() if topic.error is None and not n.startswith(INTERNAL))


@measured
def topic_offsets(properties: Mapping[str, Value], topic: str, group: str = "") -> TopicOffsets | None:
    """The topic's id and offsets; None when there is no such topic. ``ends`` is the end of what is committed.

    ``group``: a consumer group whose members are asked for, too.
    """
    asked_at = timezone.now()
    with topic_admin(properties, topic) as (admin, causes, cluster_id):
        try:
            described = admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT_S)[topic].result()
            partitions = [TopicPartition(topic, p.id) for p in described.partitions]
            starts = _list_offsets(admin, partitions, OffsetSpec.earliest())
            ends = _list_offsets(admin, partitions, OffsetSpec.latest())
            written = _list_offsets(admin, partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise _problem(error, admin, causes, topic) from None
        members, unknown = _members(admin, group, topic) if group else ((), "")
    return TopicOffsets(str(described.topic_id), starts, ends, written, cluster_id, asked_at, members, unknown)


def _members(admin: AdminClient, group: str, topic: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Who reads the topic in the group; or why that is not known: a login that may not ask may read all the same."""
    try:
        members = admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S)[group].result().members
    except KafkaException as error:
        return (), _why_unknown(error.args[0], group)
    reading = (m for m in members if m.assignment and any(p.topic == topic for p in m.assignment.topic_partitions))
    return tuple((m.client_id, m.host.lstrip("/")) for m in reading), ""


def _why_unknown(error: KafkaError, group: str) -> str:
    """Empty where the group is not there, or its coordinator is being found: nobody is in it yet."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return f"This login lacks the right DESCRIBE on group {group!r}."
    return (
        "" if "COORDINATOR" in error.name() or error.name() == "GROUP_ID_NOT_FOUND" else f"{client_error_text(error)}."
    )


def _list_offsets(
    admin: AdminClient,
    partitions: list[TopicPartition],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[int, int]:
    futures = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=TIMEOUT_S)
    return {p.partition: future.result().offset for p, future in futures.items()}


@measured
def holds_records(
    properties: Mapping[str, Value],
    topic: str,
    partition: int,
    start: int,
    end: int,
    isolation: str = "read_committed",
) -> bool:
    """Whether a record lies in ``[start, end)`` of the partition: a marker is none, an aborted one by ``isolation``."""
    consumer = record_reader(properties, topic, {"isolation.level": isolation})
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        message = consumer.poll(TIMEOUT_S)
        while message is not None and is_group_refusal(message):
            message = consumer.poll(TIMEOUT_S)
        if message is None:
            raise KafkaProblem(f"{topic} partition {partition} did not answer within {TIMEOUT_S:.0f} s")
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaProblem(f"{topic} partition {partition} can't be read: {error.str()}")
        return error is None and message.offset() < end
    finally:
        consumer.close()


def record_reader(properties: Mapping[str, Value], topic: str, config: Mapping[str, object]) -> Consumer:
    """It joins no group, and stands at no partition yet."""
    with topic_admin(properties, topic):
        pass  # the brokers' addresses are allowed
    own_config: dict[str, object] = {
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "error_cb": lambda error: None,
        "log_level": 0,
    }
    return Consumer({**_config(properties), **own_config, **config})


def is_group_refusal(message: Message) -> bool:
    """With its partition assigned, a consumer reads without a right to its group, and hears once that it has none."""
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


@measured
def first_record_times(
    properties: Mapping[str, Value], topic: str, within: Mapping[int, tuple[int, int]]
) -> tuple[dict[int, int | None], frozenset[int]]:
    """By partition, the time of the first record in ``[start, end)``, in ms since 1970; None: it has no time.

    Left out is a partition without a record there. Also returns the partitions that did not answer in time. Records of
    transactions that are open or were aborted count.
    """
    small = {"isolation.level": "read_uncommitted", "max.partition.fetch.bytes": 4096, "queued.min.messages": 1}
    consumer = record_reader(properties, topic, {**small, "fetch.min.bytes": 1, "fetch.wait.max.ms": 100})
    times: dict[int, int | None] = {}
    waiting, deadline = dict(within), monotonic() + TIMEOUT_S
    try:
        consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in within.items()])
        while waiting and (left_s := deadline - monotonic()) > 0:
            message = consumer.poll(left_s)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.code() != KafkaError._PARTITION_EOF):
                continue
            number, offset = message.partition(), message.offset()
            if number not in waiting or offset is None:
                continue
            _, end = waiting.pop(number)
            consumer.pause([TopicPartition(topic, number)])
            if error is None and offset < end:
                kind, time_ms = message.timestamp()
                times[number] = None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms
    finally:
        consumer.close()
    return times, frozenset(waiting)


@measured
def topic_config(properties: Mapping[str, Value], topic: str) -> dict[str, str | None]:
    """The topic's settings, the broker's where it has none of its own. Needs the right DESCRIBE_CONFIGS."""
    with topic_admin(properties, topic) as (admin, _, _):
        entries = describe_config(admin, ConfigResource(ResourceType.TOPIC, topic))
    return {name: entry.value for name, entry in entries.items()}


def describe_config(admin: AdminClient, resource: ConfigResource) -> dict[str, ConfigEntry]:
    """The settings of a topic, a group or a broker. Raises ``KafkaException``."""
    [future] = admin.describe_configs([resource], request_timeout=TIMEOUT_S).values()
    entries: dict[str, ConfigEntry] = future.result()
    return entries


@contextmanager
def cluster(properties: Mapping[str, Value]) -> Iterator[tuple[AdminClient, ClusterMetadata]]:
    """A client, and the metadata of the cluster, whose brokers may be asked, with all topics that may be described."""
    with _connect(properties, None) as (admin, _, metadata):
        yield admin, metadata


@contextmanager
def topic_admin(properties: Mapping[str, Value], topic: str) -> Iterator[tuple[AdminClient, list[str], str]]:
    """A client, the causes of its trouble as they come in, and the id of the cluster, whose brokers may be asked."""
    with _connect(properties, topic) as (admin, causes, metadata):
        yield admin, causes, str(metadata.cluster_id)


@contextmanager
def _connect(
    properties: Mapping[str, Value], topic: str | None
) -> Iterator[tuple[AdminClient, list[str], ClusterMetadata]]:
    causes: list[str] = []
    config = {
        **_config(properties),
        "error_cb": lambda error: causes.append(str(error.str())),
        "socket.connection.setup.timeout.ms": 4000,
        "log_level": 0,
    }
    try:
        admin = AdminClient(config)
    except KafkaException as error:
        raise KafkaProblem(str(error.args[0].str())) from None
    try:
        yield admin, causes, _checked_cluster(admin, topic)
    except KafkaException as error:
        raise _problem(error, admin, causes, topic) from None


def check_configuration(config: Mapping[str, str]) -> None:
    """Have the client read a configuration, its certificates and keys too, without connecting anywhere.

    Raises ``PropertyProblem`` with the client's reason.
    """
    alone = {name: value for name, value in with_token(config).items() if name != "bootstrap.servers"}
    try:
        AdminClient({**alone, "log_level": 0})
    except KafkaException as error:
        raise PropertyProblem("consumerProperties", str(error.args[0].str())) from None


def _config(properties: Mapping[str, Value]) -> dict[str, object]:
    try:
        return {**checked_client_config(client_properties(properties), settings.ADDRESS_POLICY)}
    except (AddressProblem, PropertyProblem) as problem:
        raise KafkaProblem(str(problem)) from None


def _checked_cluster(admin: AdminClient, topic: str | None) -> ClusterMetadata:
    """The cluster's metadata. A broker that may be spoken to can name others that may not: these are looked at first.

    Raises ``KafkaProblem``, ``KafkaException``.

    Metadata come from a bootstrap server; all other questions may go to a broker that it has named.
    """
    metadata = admin.list_topics(topic, timeout=TIMEOUT_S)
    for broker in metadata.brokers.values():
        try:
            settings.ADDRESS_POLICY.resolve(broker.host, broker.port)
        except AddressUnknown:
            continue  # left to the client
        except AddressRefused as refused:
            raise KafkaProblem(f"Kafka's broker {broker.id} is advertised as {refused}") from None
    return metadata


def _problem(error: KafkaException, admin: AdminClient, causes: list[str], topic: str | None) -> KafkaProblem:
    if topic is not None and error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return KafkaRefuses(f"This login lacks the right DESCRIBE on topic {topic!r}, or there is no such topic.")
    return KafkaProblem(_reason(error, admin, causes))


def _reason(error: KafkaException, admin: AdminClient, causes: list[str]) -> str:
    admin.poll(0)  # the causes come in while it is asked
    text = client_error_text(error.args[0])
    return f"{text}: {causes[0]}" if causes and causes[0] not in text else text
