"""How much a topic holds, as far as some of its records tell. Kafka's client has no call that asks brokers for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.connections import kafka
from controlplane.connections.browsing import Cluster
from controlplane.connections.client_properties import PropertyProblem


@dataclass(frozen=True)
class TopicSize:
    """Keys, payloads and headers as readers get them; on the brokers' disks they may be compressed."""

    average_bytes: float  # of the records that were looked at
    records: int | None  # from first to end; None: not known

    @property
    def about_bytes(self) -> int | None:
        return None if self.records is None else round(self.records * self.average_bytes)


def size_of(cluster: Cluster, topic: str, sizes: Sequence[int]) -> TopicSize | None:
    """By the sizes of some records; None without any."""
    if not sizes:
        return None
    return TopicSize(sum(sizes) / len(sizes), _count_records(cluster, topic))


def _count_records(cluster: Cluster, topic: str) -> int | None:
    try:
        offsets = kafka.topic_offsets(cluster.properties, topic)
    except (kafka.KafkaProblem, PropertyProblem):
        return None
    return (
        None
        if offsets is None
        else sum(end - offsets.start_offsets.get(p, end) for p, end in offsets.end_offsets.items())
    )
