"""A position, resolved at the brokers to an offset of each partition, with what a person has to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from django.utils import timezone

from controlplane.connections import kafka
from controlplane.connections.kafka import TIMEOUT_S, TopicOffsets, describe_config, measured, topic_admin
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.positions import Position
from ingestion.specs.kafka.providers import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = "message.timestamp.type"
LISTED = 10  # partitions that a sentence names


@dataclass(frozen=True)
class PartitionPosition:
    """Where a position lies in one partition."""

    partition: int
    offset: int  # of the first record that is read, in ``[log_start, end]``
    log_start: int
    end: int  # exclusive, of what a reader with this isolation level may read
    time: datetime | None = None  # of the first record from the offset on, if the brokers told it

    @property
    def records(self) -> int:
        """Between the offset and the end, at most: markers of transactions and compacted records count too."""
        return self.end - self.offset


@dataclass(frozen=True)
class ResolvedPosition:
    """A position in a topic, as it was when the brokers were asked."""

    position: Position  # a duration is an instant here
    topic: str
    topic_id: str
    cluster_id: str
    resolved_at: datetime
    partitions: tuple[PartitionPosition, ...]  # by number
    # Whether producers set the records' times, so that they may go back and forth; None: it is not known.
    create_time: bool | None = False

    @property
    def offsets(self) -> dict[int, int]:
        """By partition."""
        return {p.partition: p.offset for p in self.partitions}

    @property
    def warnings(self) -> list[str]:
        """What is not as the position's text suggests, each a sentence or more."""
        instant = self.position.instant
        if instant is None:
            return []
        return [text for text in (self._of_the_future(instant), self._of_lost_records(), self._of_times()) if text]

    def _of_the_future(self, instant: datetime) -> str:
        if instant <= self.resolved_at:
            return ""
        return (
            "This time is in the future. Where no record has such a time yet, reading begins at the end, as with "
            "latest: it does not wait for that time."
        )

    def _of_lost_records(self) -> str:
        gone = [p.partition for p in self.partitions if 0 < p.offset == p.log_start]
        if not gone:
            return ""
        where = "all partitions" if len(gone) == len(self.partitions) else _list_of(gone)
        return f"Kafka has deleted the older records of {where}: reading begins at the first one that exists."

    def _of_times(self) -> str:
        if self.create_time is None:
            return (
                f"Headgate can't see who sets the times of topic {self.topic}, because this login lacks the right "
                "DESCRIBE_CONFIGS on it. If producers set them, times may go back and forth."
            )
        if not self.create_time:
            return ""
        return (
            f"Producers set the times of topic {self.topic} ({_TIMES}=CreateTime), so times may go back and forth. "
            "Reading begins at the first record that has this time or a later one. All records before it are older. "
            "Records after it may be older too."
        )


def resolve(
    properties: Mapping[str, Value], topic: str, position: Position, isolation: Isolation
) -> ResolvedPosition | None:
    """Ask the brokers where a position lies in each partition; blocks for seconds. None when there is no such topic.

    A partition without a record of that time or a later one: at its end. A duration is counted from now; give one that
    was counted already (``Position.at``) to get the same place twice. Raises ``KafkaProblem``, and ``KafkaRefuses``
    where rights are missing.
    """
    log = kafka.topic_offsets(properties, topic)
    return None if log is None else resolve_in(log, properties, topic, position, isolation)


def resolve_in(
    log: TopicOffsets, properties: Mapping[str, Value], topic: str, position: Position, isolation: Isolation
) -> ResolvedPosition:
    """Where a position lies in a topic whose offsets are known; for ``earliest`` and ``latest`` Kafka is not asked.

    Ends come before times, so a record of that time that arrives in between is behind these ends.
    """
    now = timezone.now()
    at = position.at(now)
    readable = log.for_isolation(isolation)
    defaults = log.start_offsets if at.kind == "earliest" else readable.end_offsets
    found: dict[int, tuple[int, datetime | None]] = {p: (offset, None) for p, offset in defaults.items()}
    create_time: bool | None = False
    if at.timestamp_ms is not None:
        records, create_time = first_records(properties, topic, list(found), at.timestamp_ms, isolation)
        found |= records
    partitions = tuple(_place(p, *found[p], readable) for p in sorted(found))
    return ResolvedPosition(at, topic, log.topic_id, log.cluster_id, now, partitions, create_time)


def _place(partition: int, offset: int, time: datetime | None, log: TopicOffsets) -> PartitionPosition:
    """A record may have come after the end was asked."""
    start, end = log.start_offsets[partition], log.end_offsets[partition]
    return PartitionPosition(partition, max(offset, start), start, max(offset, start, end), time)


@measured
def first_records(
    properties: Mapping[str, Value], topic: str, partitions: Sequence[int], timestamp_ms: int, isolation: Isolation
) -> tuple[dict[int, tuple[int, datetime | None]], bool | None]:
    """By partition, the first record of this time or later, and its time; left out: there is none.

    Also whether producers set the times; None where this login may not ask.
    """
    with topic_admin(properties, topic) as (admin, _, _):
        futures = admin.list_offsets(
            {TopicPartition(topic, p): OffsetSpec.for_timestamp(timestamp_ms) for p in partitions},
            isolation_level=IsolationLevel[isolation.upper()],
            request_timeout=TIMEOUT_S,
        )
        answers = {p.partition: future.result() for p, future in futures.items()}
        create_time = _has_create_time(admin, topic)
    return {p: (a.offset, _time(a.timestamp)) for p, a in answers.items() if a.offset >= 0}, create_time


def _has_create_time(admin: AdminClient, topic: str) -> bool | None:
    try:
        entry = describe_config(admin, ConfigResource(ResourceType.TOPIC, topic)).get(_TIMES)
    except KafkaException:
        return None
    return None if entry is None else entry.value != "LogAppendTime"


def _time(ms: int) -> datetime | None:
    """Producers write what they like: a time outside of the calendar is none."""
    try:
        return _EPOCH + timedelta(milliseconds=ms) if ms >= 0 else None
    except OverflowError:
        return None


def _list_of(partitions: Sequence[int]) -> str:
    numbers = ", ".join(map(str, partitions[:LISTED]))
    more = f" and {len(partitions) - LISTED} more" if len(partitions) > LISTED else ""
    return f"partition{'s' if len(partitions) > 1 else ''} {numbers}{more}"
