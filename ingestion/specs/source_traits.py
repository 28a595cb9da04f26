"""The traits of each source, for all code outside its reader.

Code that depends on the source reads one of these fields, never the source's name. So a new source needs only its
traits here, and existing lists, pages and addresses handle it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How the settled offsets of a topic are stored. Several sources may share one way."""

    kind: str  # as the metadata store has it
    label: str
    # One number for each partition, in the metadata store; else a broker remembers what was acknowledged.
    keeps_offsets: bool


@dataclass(frozen=True, kw_only=True)
class SourceTraits:
    """The traits of one source."""

    kind: str  # that of its tasks
    label: str  # what people call it
    progress: Progress
    # Druid's types of its specs.
    task_type: str
    supervisor_type: str
    # Who reads which partition is settled when a task begins: by the partition's number, among so many indexers.
    assigns_by_number: bool = False
    in_consumer_group: bool = False  # Kafka deals out the partitions among the group's members
    # A share group of Kafka's: it has leases, a configuration on the broker, and holes that an ordinary reader fills.
    in_share_group: bool = False
    # A supervisor's tasks read for a ``taskDuration`` from their creation; which records are late follows from that.
    ends_by_time: bool = False
    # What a stored ioConfig has whose group in Kafka is called as its owner is, as it names none itself.
    unnamed_group: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps_offsets(self) -> bool:
        return self.progress.keeps_offsets


SHARE_GROUPS = Progress(kind="share_group", label="share group", keeps_offsets=False)
STORED_OFFSETS = Progress(kind="offsets", label="stored offsets", keeps_offsets=True)

SHARE_GROUP = SourceTraits(
    kind="share_group",
    label="share group",
    progress=SHARE_GROUPS,
    task_type="index_kafka_share_group",
    supervisor_type="index_kafka_share_group",
    in_share_group=True,
)
OFFSET_RANGE = SourceTraits(
    kind="offset_range",
    label="stored offsets",
    progress=STORED_OFFSETS,
    task_type="index_kafka",
    supervisor_type="kafka",
    assigns_by_number=True,
    ends_by_time=True,
)
CONSUMER_GROUP = SourceTraits(
    kind="consumer_group",
    label="consumer group",
    progress=STORED_OFFSETS,
    task_type="index_kafka",
    supervisor_type="kafka",
    in_consumer_group=True,
    ends_by_time=True,
    unnamed_group={"assignment": "consumer_group"},
)
# Of a spec that is stored and can't be read any more: nothing is true of it.
UNREADABLE = SourceTraits(
    kind="unreadable",
    label="a source that this version can't read",
    progress=Progress(kind="unreadable", label="unreadable", keeps_offsets=False),
    task_type="unreadable",
    supervisor_type="unreadable",
)
