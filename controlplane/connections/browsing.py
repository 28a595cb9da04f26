"""What a cluster holds: its topics with their sizes, its groups with what they have left to read. Asked anew each time.

Members of the connection's team may look; what records hold is another thing, see ``newest_records``. All calls block
for some seconds at most, and raise ``Unavailable`` with Kafka's reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from django.core.cache import cache
from django.core.paginator import Page, Paginator

from controlplane.common.errors import InvalidInput, NotFound, Unavailable
from controlplane.connections import kafka
from controlplane.connections.client_properties import PropertyProblem
from controlplane.connections.models import Connection
from controlplane.connections.named_connections import properties_of
from controlplane.connections.probe import check_reachable
from controlplane.connections.probe_report import Clock, Failed
from ingestion.specs.kafka.providers import Value

CONNECT_S = 5.0  # for a first line to one of the servers
PAGE = 50
MAX_PAGE_SIZE = 200
MAX_PARTITIONS = 5_000  # whose ends are asked for, for one page
RATE_S = (2.0, 600.0)  # between two looks that say a rate


@dataclass(frozen=True)
class Cluster:
    """Whom to ask: a connection's cluster, or one that a spec's own properties lead to."""

    name: str
    properties: Mapping[str, Value] = field(repr=False)  # with secrets, not yet resolved
    sample_key: str  # under which name it is kept how many records its topics had, for a rate

    @classmethod
    def of(cls, connection: Connection) -> Cluster:
        """Raises ``SecretsLost``."""
        return cls(connection.name, properties_of(connection), f"{connection.pk}:{connection.version}")


@dataclass(frozen=True)
class TopicRow:
    """A topic in a list."""

    name: str
    partitions: int
    records: int | None  # from first to end: some more than there are if it is compacted; None: not known
    per_second: float | None  # since the last look at it, if that was not long ago
    problem: str = ""


@dataclass(frozen=True)
class Listing:
    """One page of a list, by name."""

    rows: list[Any]
    next: str  # the name to go on after; empty on the last page
    total: int  # all that match the search


@dataclass(frozen=True)
class PartitionRow:
    """A partition: its leader and replicas are brokers' numbers; ``end`` is exclusive. None: not known."""

    number: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    start: int | None
    end: int | None

    @property
    def out_of_sync(self) -> int:
        """Replicas that are not in sync."""
        return len(self.replicas) - len(self.in_sync)

    @property
    def records(self) -> int | None:
        return None if self.start is None or self.end is None else max(0, self.end - self.start)


@dataclass(frozen=True)
class Setting:
    """One value of a topic's configuration."""

    name: str
    value: str | None  # None for what Kafka does not tell
    is_default: bool


@dataclass(frozen=True)
class TopicDetail:
    """A topic in full."""

    name: str
    topic_id: str
    partitions: list[PartitionRow]
    settings: list[Setting] = field(default_factory=list)
    settings_problem: str = ""  # why they are not known

    @property
    def records(self) -> int:
        return sum(p.records or 0 for p in self.partitions)


@dataclass(frozen=True)
class GroupRow:
    """A consumer group in a list."""

    name: str
    state: str
    type: str


@dataclass(frozen=True)
class GroupMember:
    client_id: str
    host: str
    partitions: int


@dataclass(frozen=True)
class GroupOffset:
    """How far a group has read a partition; ``lag``: to the end of what is committed there."""

    topic: str
    partition: int
    offset: int
    end: int | None

    @property
    def lag(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.offset)


@dataclass(frozen=True)
class GroupDetail:
    name: str
    state: str
    type: str
    assignor: str
    members: list[GroupMember]
    offsets: list[GroupOffset]
    offsets_problem: str = ""

    @property
    def lag(self) -> int:
        return sum(o.lag or 0 for o in self.offsets)


def list_topics(
    connection: Connection, *, search: str = "", after: str = "", limit: int = PAGE, internal: bool = False
) -> Listing:
    """A page of ``TopicRow``: topics that this login may describe, whose name contains ``search``, by name.

    ``after``: the ``next`` of the page before. ``internal``: Kafka's own too, whose names begin with two underscores.
    The number of records and the rate are asked for this page alone.
    """
    cluster = Cluster.of(connection)
    with _connect(cluster) as (admin, metadata):
        topics = metadata.topics
        names = _matching_names(topics, search, internal)
        shown, following = _page(names, after, limit)
        counts = _counts_of(admin, topics, shown)
    return Listing([_row(cluster, topics[n], counts.get(n)) for n in shown], following, len(names))


def sorted_topics(
    cluster: Cluster,
    sort_rows: Callable[[list[TopicRow]], list[TopicRow]],
    *,
    number: str | None = None,
    search: str = "",
    internal: bool = False,
    by_records: bool = False,
) -> Page[TopicRow]:
    """A numbered page of the topics that ``list_topics`` has, sorted by ``sort_rows``.

    What it sorts knows its name and partitions; with ``by_records`` all topics are asked for their records first.
    Raises ``InvalidInput`` where they have too many partitions for that.
    """
    with _connect(cluster) as (admin, metadata):
        topics = metadata.topics
        names = _matching_names(topics, search, internal)
        if by_records and sum(len(topics[name].partitions) for name in names) > MAX_PARTITIONS:
            raise InvalidInput(f"Topics with more than {MAX_PARTITIONS:,} partitions can't be sorted by records.")
        counts = _counts_of(admin, topics, names) if by_records else {}
        page = Paginator(sort_rows([_row(None, topics[n], counts.get(n)) for n in names]), PAGE).get_page(number)
        shown = [row.name for row in page]
        counts = counts or _counts_of(admin, topics, shown)
    page.object_list = [_row(cluster, topics[name], counts.get(name)) for name in shown]
    return page


def _matching_names(topics: Mapping[str, Any], search: str, internal: bool) -> list[str]:
    """By name."""
    shown = (name for name in topics if internal or not name.startswith(kafka.INTERNAL))
    return sorted(name for name in shown if search.lower() in name.lower())


def _row(cluster: Cluster | None, topic: Any, count: tuple[int, int] | None) -> TopicRow:
    """``cluster``: None for a row that is only looked at to be sorted, and needs no rate."""
    rate = None if count is None or cluster is None else _rate(cluster, topic.topic, count[1])
    problem = "" if topic.error is None else str(topic.error.str())
    return TopicRow(topic.topic, len(topic.partitions), None if count is None else count[0], rate, problem)


def get_topic(connection: Connection, topic: str) -> TopicDetail:
    """A topic's partitions and configuration. Raises ``NotFound``, ``Unavailable``."""
    with _connect(Cluster.of(connection)) as (admin, _):
        described = _describe_topic(admin, topic)
        numbers = [p.id for p in described.partitions]
        starts = _partition_offsets(admin, topic, numbers, OffsetSpec.earliest())
        ends = _partition_offsets(admin, topic, numbers, OffsetSpec.latest())
        settings, problem = _settings(admin, topic)
    partitions = [
        PartitionRow(
            number=p.id,
            leader=p.leader.id if p.leader else None,
            replicas=[r.id for r in p.replicas],
            in_sync=[r.id for r in p.isr],
            start=starts.get(p.id),
            end=ends.get(p.id),
        )
        for p in sorted(described.partitions, key=lambda p: p.id)
    ]
    return TopicDetail(topic, str(described.topic_id), partitions, settings, problem)


def require_topic(connection: Connection, topic: str) -> None:
    """Raise ``NotFound`` for a topic that there is not, ``Unavailable`` where the cluster does not answer."""
    with _connect(Cluster.of(connection)) as (admin, _):
        _describe_topic(admin, topic)


def _describe_topic(admin: AdminClient, topic: str) -> Any:
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=kafka.TIMEOUT_S)
    try:
        return futures[topic].result()
    except KafkaException as error:
        if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION"):
            raise NotFound(
                f"There is no topic {topic!r} in this cluster, or this login has no permission to see it."
            ) from None
        raise


def list_groups(connection: Connection, *, search: str = "", after: str = "", limit: int = PAGE) -> Listing:
    """A page of ``GroupRow``: consumer groups, by name. Kafka's client does not list share groups."""
    rows = {row.name: row for row in all_groups(connection, search=search)}
    shown, following = _page(sorted(rows), after, limit)
    return Listing([rows[name] for name in shown], following, len(rows))


def all_groups(connection: Connection, *, search: str = "") -> list[GroupRow]:
    """Those whose name contains ``search``, in no order: Kafka tells all or none."""
    with _connect(Cluster.of(connection)) as (admin, _):
        listing = admin.list_consumer_groups(request_timeout=kafka.TIMEOUT_S).result()
    groups = (g for g in listing.valid if search.lower() in g.group_id.lower())
    return [GroupRow(g.group_id, _enum_word(g.state), _enum_word(g.type)) for g in groups]


def get_group(connection: Connection, group: str) -> GroupDetail:
    """A consumer group's members and lag. Raises ``NotFound``, ``Unavailable``."""
    with _connect(Cluster.of(connection)) as (admin, _):
        try:
            described = admin.describe_consumer_groups([group], request_timeout=kafka.TIMEOUT_S)[group].result()
        except KafkaException as error:
            if error.args[0].name() in ("GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED"):
                raise NotFound(
                    f"There is no group {group!r} in this cluster, or this login has no permission to see it."
                ) from None
            raise
        if _enum_word(described.state) == "dead":
            raise NotFound(f"There is no consumer group {group!r} in this cluster.")
        offsets, problem = _group_offsets(admin, group)
    members = [
        GroupMember(m.client_id, m.host, len(m.assignment.topic_partitions) if m.assignment else 0)
        for m in described.members
    ]
    state, kind = _enum_word(described.state), _enum_word(described.type)
    return GroupDetail(group, state, kind, str(described.partition_assignor or ""), members, offsets, problem)


@contextmanager
def _connect(cluster: Cluster) -> Iterator[tuple[AdminClient, Any]]:
    try:
        check_reachable(cluster.properties, Clock(CONNECT_S))
        with kafka.cluster(cluster.properties) as admin_and_metadata:
            yield admin_and_metadata
    except Failed as failed:
        raise Unavailable(f"{failed.message} {failed.advice}") from None
    except (kafka.KafkaProblem, PropertyProblem) as problem:
        raise Unavailable(f"The cluster does not answer: {problem}.") from None


def _page(names: Sequence[str], after: str, limit: int) -> tuple[list[str], str]:
    limit = max(1, min(limit, MAX_PAGE_SIZE))
    remaining = [name for name in names if name > after] if after else list(names)
    shown = remaining[:limit]
    return shown, shown[-1] if len(remaining) > limit else ""


def _counts_of(admin: AdminClient, topics: Mapping[str, Any], names: Iterable[str]) -> dict[str, tuple[int, int]]:
    return _record_counts(admin, {name: list(topics[name].partitions) for name in names if topics[name].error is None})


def _record_counts(admin: AdminClient, partitions: dict[str, list[int]]) -> dict[str, tuple[int, int]]:
    """Topic → how many records lie between first and end, and the sum of its ends; without those not known."""
    if sum(map(len, partitions.values())) > MAX_PARTITIONS:
        return {}
    positions = [TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers]
    starts, ends = (_list_offsets(admin, positions, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
    counts = {}
    for topic, numbers in partitions.items():
        keys = [(topic, number) for number in numbers]
        if all(key in starts and key in ends for key in keys):
            end = sum(ends[key] for key in keys)
            counts[topic] = (end - sum(starts[key] for key in keys), end)
    return counts


def _partition_offsets(admin: AdminClient, topic: str, numbers: Sequence[int], spec: OffsetSpec) -> dict[int, int]:
    if len(numbers) > MAX_PARTITIONS:
        return {}
    offsets = _list_offsets(admin, [TopicPartition(topic, number) for number in numbers], spec)
    return {number: offset for (_, number), offset in offsets.items()}


def _list_offsets(admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
    """Without those that have no leader just now."""
    if not partitions:
        return {}
    offsets = {}
    futures = admin.list_offsets(dict.fromkeys(partitions, spec), request_timeout=kafka.TIMEOUT_S)
    for partition, future in futures.items():
        try:
            offsets[partition.topic, partition.partition] = future.result().offset
        except KafkaException:
            continue
    return offsets


def _settings(admin: AdminClient, topic: str) -> tuple[list[Setting], str]:
    [future] = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=kafka.TIMEOUT_S
    ).values()
    try:
        entries = future.result()
    except KafkaException as error:
        return [], str(error.args[0].str())
    topic_settings = [Setting(n, None if e.is_sensitive else e.value, bool(e.is_default)) for n, e in entries.items()]
    return sorted(topic_settings, key=lambda s: (s.is_default, s.name)), ""


def _group_offsets(admin: AdminClient, group: str) -> tuple[list[GroupOffset], str]:
    try:
        futures = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], request_timeout=kafka.TIMEOUT_S
        )
        committed = [p for p in futures[group].result().topic_partitions if p.offset >= 0]
    except KafkaException as error:
        return [], str(error.args[0].str())
    partitions = [TopicPartition(p.topic, p.partition) for p in committed[:MAX_PARTITIONS]]
    ends = _list_offsets(admin, partitions, OffsetSpec.latest())
    offsets = [GroupOffset(p.topic, p.partition, p.offset, ends.get((p.topic, p.partition))) for p in committed]
    return sorted(offsets, key=lambda o: (o.topic, o.partition)), ""


def _rate(cluster: Cluster, topic: str, end: int) -> float | None:
    """Records a second since the look before; that is kept so long that two quick ones do not make up a rate."""
    key = f"topic-look:{cluster.sample_key}:{topic}"
    now, before = time.time(), cache.get(key)
    shortest, longest = RATE_S
    if before is None or now - before[0] > longest or end < before[1]:
        cache.set(key, (now, end), longest)
        return None
    if now - before[0] < shortest:
        return None
    if now - before[0] > longest / 10:
        cache.set(key, (now, end), longest)
    return float((end - before[1]) / (now - before[0]))


def _enum_word(value: Any) -> str:
    return str(value.name).lower().replace("_", " ") if value is not None else ""
