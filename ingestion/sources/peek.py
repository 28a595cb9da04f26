"""A look at a topic's first or last records: no group is joined, nothing is committed, nothing waited for.

Partitions are assigned by hand. Unless the spec reads what is not committed too, aborted records are not there, and
where a transaction is open the topic ends. Looking at the last records, offsets without one make it look further back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ingestion.sources.base import SourceProblem
from ingestion.sources.client_problems import is_of_unused_group
from ingestion.sources.topic import admin_client, checked_cluster
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.kafka.properties import librdkafka_properties

ANSWER_S = 5.0  # the most that Kafka may take to say what the topic is
STEP_BACK = 8  # times as far, whenever there was too little
_MEMORY_LIMITS = {
    "fetch.max.bytes": 4 * 1024 * 1024,
    "max.partition.fetch.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 8 * 1024,
}
_UNKNOWN_TOPIC_ERRORS = ("UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION")
# While a partition gets its leader: a topic that was just made.
_TRANSIENT_ERRORS = ("UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION")
Span = tuple[int, int]
T = TypeVar("T")


class NoSuchTopic(SourceProblem):
    """There is no topic of this name, or it may not be seen."""

    permanent = True


@dataclass
class Peek:
    """Kafka's messages by time, oldest first."""

    messages: list[Any] = field(default_factory=list)
    stopped_by: Literal["", "time", "bytes"] = ""  # ``time`` or ``bytes`` if there would be more
    size_bytes: int = 0
    window_counts: dict[int, int] = field(
        default_factory=dict
    )  # by window, as it was asked for: how many came within it


@dataclass(frozen=True)
class Limits:
    """What a look at a topic may take."""

    rows: int
    size_bytes: int
    until: float  # on the monotonic clock

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    @property
    def answer_timeout_s(self) -> float:
        """How many seconds Kafka may take to answer a question."""
        return max(0.1, min(ANSWER_S, self.seconds_left))


@dataclass(frozen=True)
class TopicLocation:
    """Where a look at a topic goes."""

    properties: Mapping[str, str]  # admissible; brokers that they lead to must be so too, by ``policy``
    topic: str
    policy: AddressPolicy
    isolation: Isolation = "read_committed"


@dataclass(frozen=True)
class TopicState:
    """A topic as it is now."""

    topic_id: str
    log: dict[int, Span]  # start and end of what there is to read in every partition


def peek(location: TopicLocation, *, earliest: bool, limits: Limits, windows_s: Sequence[int] = ()) -> Peek:
    """The topic's first records, or its last, of all partitions alike. Raises ``NoSuchTopic``, ``SourceProblem``.

    ``windows_s``: how many seconds, up to now, the records are counted of that came within them, by Kafka's times.
    """
    properties, topic = location.properties, location.topic

    def window_starts(admin: AdminClient, partitions: list[TopicPartition]) -> dict[int, dict[int, int]]:
        now_ms = time.time_ns() // 1_000_000
        specs = {window: OffsetSpec.for_timestamp(now_ms - window * 1000) for window in windows_s}
        return {
            window: list_offsets(admin, partitions, spec, location.isolation, limits) for window, spec in specs.items()
        }

    topic_state, starts = query_topic(location, limits, window_starts)
    log = topic_state.log
    shares = allocate({p: end - start for p, (start, end) in log.items()}, limits.rows)
    try:
        peeked = _Reader(properties, topic, location.isolation, log, shares, earliest, limits).read()
    except KafkaException as error:
        raise SourceProblem(f"Reading {topic}: {error.args[0].str()}") from None
    peeked.messages.sort(key=lambda m: (m.timestamp()[1], m.partition(), m.offset()))
    peeked.window_counts = {window: _count_offsets(log, at) for window, at in starts.items()}
    return peeked


def _count_offsets(log: Mapping[int, Span], starts: Mapping[int, int]) -> int:
    """How many offsets there are from these on; -1 of a partition says that it has no record so young."""
    return sum(max(0, end - max(start, starts[p])) for p, (start, end) in log.items() if starts[p] >= 0)


def query_topic(
    place: TopicLocation, limits: Limits, ask: Callable[[AdminClient, list[TopicPartition]], T]
) -> tuple[TopicState, T]:
    """What the topic is and holds, and what else ``ask`` asks of it. Raises ``NoSuchTopic``, ``SourceProblem``."""
    errors: list[str] = []
    admin = admin_client(place.properties, errors)
    topic = place.topic
    while True:
        try:
            checked_cluster(admin, topic, place.policy, limits.answer_timeout_s)
            topic_state = _describe_topic(admin, place, limits)
            return topic_state, ask(admin, [TopicPartition(topic, p) for p in topic_state.log])
        except KafkaException as error:
            reason = error.args[0]
            if reason.name() in _UNKNOWN_TOPIC_ERRORS:
                raise NoSuchTopic(f"there is no topic {topic!r} in this Kafka cluster") from None
            if reason.name() not in _TRANSIENT_ERRORS or not limits.seconds_left:
                admin.poll(0)  # hands over what went wrong with the connections
                cause = f" ({errors[-1]})" if errors else ""
                raise SourceProblem(f"Kafka does not say what the topic holds: {reason.str()}{cause}") from None
            admin.poll(0.1)


def _describe_topic(admin: AdminClient, place: TopicLocation, limits: Limits) -> TopicState:
    topic = place.topic
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=limits.answer_timeout_s)
    described = futures[topic].result()
    partitions = [TopicPartition(topic, p.id) for p in described.partitions]
    starts = list_offsets(admin, partitions, OffsetSpec.earliest(), place.isolation, limits)
    ends = list_offsets(admin, partitions, OffsetSpec.latest(), place.isolation, limits)
    return TopicState(str(described.topic_id), {p: (starts[p], ends[p]) for p in starts})


def list_offsets(
    admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec, isolation: Isolation, limits: Limits
) -> dict[int, int]:
    """The offset of each partition that ``spec`` asks for. Raises ``KafkaException``."""
    futures = admin.list_offsets(
        dict.fromkeys(partitions, spec),
        isolation_level=IsolationLevel[isolation.upper()],
        request_timeout=limits.answer_timeout_s,
    )
    return {p.partition: future.result().offset for p, future in futures.items()}


def consumer_config(properties: Mapping[str, str], isolation: Isolation, errors: list[str]) -> dict[str, Any]:
    """Of a consumer that only looks; it keeps the causes of trouble in ``errors``."""
    return {
        **librdkafka_properties(properties),
        **_MEMORY_LIMITS,
        "group.id": "headgate-sampler",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 20,
        "error_cb": lambda error: errors.append(str(error.str())),
        "log_level": 0,
    }


def allocate(available: Mapping[int, int], total: int) -> dict[int, int]:
    """How many of ``total`` each takes: alike, and what one lacks the others give. Who takes none is left out."""
    shares: dict[int, int] = {}
    left = total
    by_size = sorted((size, key) for key, size in available.items() if size > 0)
    for place, (size, key) in enumerate(by_size):
        share = min(size, -(-left // (len(by_size) - place)))
        if share:
            shares[key] = share
            left -= share
    return shares


@dataclass
class _Reader:
    """Reads spans of partitions, round by round, until each has its share."""

    properties: Mapping[str, str]
    topic: str
    isolation: Isolation
    log: dict[int, Span]
    shares: dict[int, int]
    earliest: bool
    limits: Limits
    found: Peek = field(default_factory=Peek)
    errors: list[str] = field(default_factory=list)

    def read(self) -> Peek:
        messages_by_partition: dict[int, list[Any]] = {p: [] for p in self.shares}
        spans = {p: self._first_span(p) for p in self.shares}
        while spans and not self.found.stopped_by:
            for partition, messages in self._round(spans).items():
                # Of a span that is at the end the last ones count, not the first.
                messages_by_partition[partition] = [*messages, *messages_by_partition[partition]][
                    -self.shares[partition] :
                ]
            spans = self._earlier_spans(spans, messages_by_partition)
        self.found.messages = [m for messages in messages_by_partition.values() for m in messages]
        if not self.found.messages and self.found.stopped_by == "time":
            cause = f": {self.errors[-1]}" if self.errors else " in time"
            raise SourceProblem(f"{self.topic} can't be read{cause}")
        return self.found

    def _first_span(self, partition: int) -> Span:
        start, end = self.log[partition]
        return (start, end) if self.earliest else (max(start, end - self.shares[partition]), end)

    def _earlier_spans(self, spans: dict[int, Span], messages_by_partition: dict[int, list[Any]]) -> dict[int, Span]:
        more = {}
        for partition, (low, high) in spans.items():
            start = self.log[partition][0]
            if len(messages_by_partition[partition]) < self.shares[partition] and low > start:
                more[partition] = (max(start, low - STEP_BACK * (high - low)), low)
        return more

    def _round(self, spans: dict[int, Span]) -> dict[int, list[Any]]:
        """The records in these spans; of the first records no more than the shares.

        A fresh consumer: one that is assigned anew waits for the fetch it has on its way.
        """
        read: dict[int, list[Any]] = {p: [] for p in spans}
        consumer = Consumer(consumer_config(self.properties, self.isolation, self.errors))
        try:
            consumer.assign([TopicPartition(self.topic, p, low) for p, (low, _) in spans.items()])
            self._read_spans(consumer, dict(spans), read)
        finally:
            consumer.close()
        return read

    def _read_spans(self, consumer: Consumer, left: dict[int, Span], read: dict[int, list[Any]]) -> None:
        while left:
            for message in consumer.consume(500, 0.05):
                partition = message.partition()
                if self._is_last(message, left, read) and partition in left:
                    del left[partition]
                    consumer.pause([TopicPartition(self.topic, partition)])
                if left and self.found.size_bytes >= self.limits.size_bytes:
                    self.found.stopped_by = "bytes"
                    return
            if left and not self.limits.seconds_left:
                self.found.stopped_by = "time"
                return

    def _is_last(self, message: Any, left: dict[int, Span], read: dict[int, list[Any]]) -> bool:
        """Take a message, if it is wanted; whether its partition needs no more."""
        partition, error = message.partition(), message.error()
        if is_of_unused_group(error):
            return False
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise SourceProblem(f"Reading {self.topic} partition {partition}: {error.str()}")
            return True
        if partition not in left:
            return True
        end = left[partition][1]
        if message.offset() < end:
            read[partition].append(message)
            self.found.size_bytes += len(message.value() or b"") + len(message.key() or b"")
        full = self.earliest and len(read[partition]) >= self.shares[partition]
        return full or message.offset() >= end - 1
