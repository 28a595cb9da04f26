"""How much of a topic is not settled, by the progress of the source that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.connections.kafka import TopicOffsets
from controlplane.datasources.models import Datasource
from controlplane.segments import lag as lag_series
from controlplane.segments.models import ProgressKey
from controlplane.segments.settled import note_bounds, settled_of
from controlplane.tasks.sources import sources_of
from ingestion.specs import offsets

Ranges = list[offsets.Range]


@dataclass(frozen=True)
class TopicLag:
    """By partition. ``settled``: offsets of the log that are; ``unsettled``: those that are not."""

    settled: dict[int, int]
    unsettled: dict[int, Ranges]
    undecided: int  # offsets from the first transaction on that is still open

    @property
    def total(self) -> int:
        return sum(offsets.count(left) for left in self.unsettled.values()) + self.undecided


def note_lag(
    datasource: Datasource | int, io_config: Mapping[str, Any], owner: str, topic: TopicOffsets, in_flight: int = 0
) -> TopicLag:
    """Compare what Kafka said of the topic with what is settled, and keep both for tables and charts.

    ``owner``: see ``sources_of``. ``in_flight``: records that indexers hold.
    """
    source = sources_of(datasource, io_config, owner).filter(topic_id=topic.topic_id).first()
    keys = {k.partition: k for k in source.keys.all()} if source else {}
    settled = settled_of(source) if source else {}
    begins: dict[int, int] = {}
    unsettled: dict[int, Ranges] = {}
    for partition, end in topic.ends.items():
        ranges = settled.get(partition, [])
        begin = begins[partition] = _first_offset(io_config, topic, keys.get(partition), partition, ranges)
        unsettled[partition] = offsets.subtracted([(begin, end)], ranges) if begin < end else []
    if source:
        note_bounds(source, topic.starts, begins, topic.ends, topic.undecided)
        lags = {partition: offsets.count(left) for partition, left in unsettled.items()}
        lag_series.note(source, lags, more=topic.undecided, in_flight=in_flight)
    counted = {p: offsets.count(settled[p]) for p in topic.ends if p in settled}
    return TopicLag(counted, unsettled, topic.undecided)


def _first_offset(
    io_config: Mapping[str, Any], topic: TopicOffsets, key: ProgressKey | None, partition: int, ranges: Ranges
) -> int:
    """Where the reader begins on a partition: its first range or stored offset, else by ``useEarliestOffset``."""
    if key is not None and key.next_offset is not None:
        return ranges[0][0] if ranges else key.next_offset
    if io_config["useEarliestOffset"]:
        return topic.starts[partition]
    return ranges[0][0] if ranges else topic.ends[partition]
