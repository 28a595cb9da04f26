"""How much of a topic is not settled, by the progress of the source that reads it."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.connections.kafka import TopicOffsets
from controlplane.datasources.models import Datasource
from controlplane.segments import lag_store
from controlplane.segments.holes import Extent, Unsettled, extents, unsettled
from controlplane.segments.models import ProgressKey
from controlplane.segments.settled import keep_bounds
from controlplane.tasks.sources import sources_of
from ingestion.specs import IOConfig

MOST_RANGES = 100  # unsettled ranges of a partition that are told


@dataclass(frozen=True)
class TopicLag:
    """How far a reader is behind its topic."""

    partitions: dict[int, Unsettled]  # by number, between where the reader begins and the log's end
    undecided: int  # offsets from the first transaction on that is still open

    @property
    def total(self) -> int:
        return sum(p.lag for p in self.partitions.values()) + self.undecided

    @property
    def settled(self) -> int:
        """Offsets of the log that are."""
        return sum(p.settled for p in self.partitions.values())


def keep_lag(
    datasource: Datasource | int, io_config: IOConfig, owner: str, topic: TopicOffsets, in_flight: int = 0
) -> TopicLag:
    """Compare what Kafka said of the topic with what is settled, and keep both for tables and charts.

    ``owner``: see ``sources_of``. ``in_flight``: records that indexers hold.
    """
    source = sources_of(datasource, io_config, owner).filter(topic_id=topic.topic_id).first()
    keys = {k.partition: k for k in source.keys.all()} if source else {}
    settled = extents(source) if source else {}
    begins = {p: _first_offset(io_config, topic, keys.get(p), p, settled.get(p)) for p in topic.ends}
    within = {p: (begins[p], end) for p, end in topic.ends.items()}
    if source is None:
        return TopicLag({p: _untouched(*bounds) for p, bounds in within.items()}, topic.undecided)
    partitions = unsettled(source, within, MOST_RANGES)
    keep_bounds(source, topic.starts, begins, topic.ends, topic.undecided)
    lags = {partition: of.lag for partition, of in partitions.items()}
    lag_store.keep(source, lags, more=topic.undecided, in_flight=in_flight)
    return TopicLag(partitions, topic.undecided)


def _untouched(start: int, end: int) -> Unsettled:
    return Unsettled(0, max(0, end - start), [(start, end)] if start < end else [])


def _first_offset(
    io_config: IOConfig, topic: TopicOffsets, key: ProgressKey | None, partition: int, settled: Extent | None
) -> int:
    """Where the reader begins on a partition: its first range or stored offset, else by ``useEarliestOffset``."""
    if key is not None and key.next_offset is not None:
        return settled.start if settled else key.next_offset
    if io_config.useEarliestOffset:
        return topic.starts[partition]
    return settled.start if settled else topic.ends[partition]
