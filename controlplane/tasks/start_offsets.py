"""Where a reader with stored offsets begins that was never read: at the end that Kafka told of when it was first asked.

An application starts 15 seconds later or more. What arrives meanwhile is to be read, and all of a topic that was not
there yet.
"""

from __future__ import annotations

import logging

from controlplane.common.errors import Conflict
from controlplane.connections import kafka
from controlplane.connections.secrets import SecretsLost
from controlplane.datasources.models import Datasource
from controlplane.publishing import claims
from controlplane.publishing.fence import adopt_source
from controlplane.sources.spec_sources import source_key, sources_of
from controlplane.tasks.models import Task
from controlplane.tasks.sources import owner_of, properties_of
from ingestion.specs.inputs.io_config import IOConfig

logger = logging.getLogger(__name__)


def starts_at_latest(io_config: IOConfig) -> bool:
    """Whether its start is to be kept here as soon as it is known: a share group's is the broker's business."""
    return io_config.traits.keeps_offsets and not io_config.useEarliestOffset


def store_start_offsets(
    datasource: Datasource, io_config: IOConfig, owner: str, topic: kafka.TopicOffsets, was_missing: bool
) -> None:
    """Store where to begin with a topic that was never read. ``was_missing``: it was missing when reading began."""
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
    claims.store_first_offsets(source, topic.start_offsets if was_missing else topic.end_offsets)


def set_manual_start(task: Task) -> None:
    """Ask Kafka for a manual task, before it is launched. Without an answer its indexer will."""
    io_config = task.io_config
    if task.supervisor_id or not starts_at_latest(io_config) or _has_begun(task):
        return
    try:
        topic = kafka.topic_offsets(properties_of(task), io_config.topic)
    except (kafka.KafkaProblem, SecretsLost) as problem:
        logger.warning("task %s: can't ask where its topic ends: %s", task.pk, problem)
        return
    if topic is None:
        Task.objects.filter(pk=task.pk).update(topic_missed=True)
        return
    store_start_offsets(
        task.datasource, io_config, owner_of(task), topic.for_isolation(io_config.isolation), task.topic_missed
    )


def _has_begun(task: Task) -> bool:
    sources = sources_of(task.datasource_id, task.io_config, owner_of(task))
    return sources.filter(current=True, keys__next_offset__isnull=False).exists()
