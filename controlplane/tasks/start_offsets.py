"""Where a reader with stored offsets begins that was never read: where Kafka says when it is first asked.

An application starts 15 seconds later or more. What arrives meanwhile is to be read, and all of a topic that was not
there yet.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from controlplane.common.errors import Conflict
from controlplane.connections import kafka
from controlplane.connections.positions import resolve_in
from controlplane.connections.secrets import SecretsLost
from controlplane.datasources.models import Datasource
from controlplane.publishing import claims
from controlplane.publishing.fence import adopt_source
from controlplane.publishing.settled import store_begins
from controlplane.sources.spec_sources import source_key, sources_of
from controlplane.tasks.models import Task
from controlplane.tasks.sources import owner_of, properties_of
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.kafka.positions import Position
from ingestion.specs.kafka.providers import Value

logger = logging.getLogger(__name__)


def keeps_start(io_config: IOConfig) -> bool:
    """Whether its start is to be kept as soon as it is known: a share group's at latest is the broker's business.

    A bounded read has its own.
    """
    kind = io_config.start.kind
    return (
        io_config.boundedStreamConfig is None
        and kind != "earliest"
        and (io_config.traits.keeps_offsets or kind != "latest")
    )


def find_start(properties: Mapping[str, Value], io_config: IOConfig, start: Position) -> TopicStart | None:
    """Ask Kafka where its topic is to be begun; blocks. None when there is no such topic. Raises ``KafkaProblem``."""
    topic = kafka.topic_offsets(properties, io_config.topic)
    if topic is None:
        return None
    resolved = resolve_in(topic, properties, io_config.topic, start, io_config.isolation)
    return TopicStart(topic.for_isolation(io_config.isolation), resolved.offsets)


@dataclass(frozen=True)
class TopicStart:
    """A topic as it is now, and where it is to be begun."""

    topic: kafka.TopicOffsets
    offsets: dict[int, int]  # by partition


def store_start_offsets(
    datasource: Datasource, io_config: IOConfig, owner: str, start: TopicStart, was_missing: bool
) -> None:
    """Store where to begin with a topic that was never read. ``was_missing``: it was missing when reading began."""
    topic = start.topic
    try:
        source = adopt_source(
            datasource=datasource,
            **source_key(io_config, owner),
            topic=io_config.topic,
            cluster_id=topic.cluster_id,
            topic_id=topic.topic_id,
        )
    except Conflict:
        return  # its indexers will say so
    offsets = topic.start_offsets if was_missing else start.offsets
    if io_config.traits.keeps_offsets:
        claims.store_first_offsets(source, offsets)
    else:
        store_begins(source, offsets)


def set_manual_start(task: Task) -> None:
    """Ask Kafka for a manual task, before it is launched. Without an answer its indexer will."""
    io_config = task.io_config
    if task.supervisor_id or not keeps_start(io_config) or _has_begun(task):
        return
    try:
        start = find_start(properties_of(task), io_config, io_config.start.at(task.created_at))
    except (kafka.KafkaProblem, SecretsLost) as problem:
        logger.warning("task %s: can't ask where its topic is to be begun: %s", task.pk, problem)
        return
    if start is None:
        Task.objects.filter(pk=task.pk).update(topic_missed=True)
        return
    store_start_offsets(task.datasource, io_config, owner_of(task), start, task.topic_missed)


def _has_begun(task: Task) -> bool:
    sources = sources_of(task.datasource_id, task.io_config, owner_of(task))
    started = Q(keys__next_offset__isnull=False) | Q(keys__begin_offset__isnull=False)
    return sources.filter(started, current=True).exists()
