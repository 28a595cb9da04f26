"""Which source a spec reads, how its cluster is reached, and under which name its progress is kept."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from controlplane.connections.named import kafka_properties
from controlplane.datasources.models import Datasource
from controlplane.sources.models import Source
from controlplane.tasks.models import Task
from ingestion.specs import IOConfig
from ingestion.specs.providers import Value

OF_TOPIC = ":"  # between a supervisor's id and the topic, in the id of the one that reads this topic for it


def owner_of(task: Task) -> str:
    """Under whose name a task's stored offsets are kept."""
    return owner_named(task.supervisor_id) or task.datasource.name


def owner_named(supervisor_id: str) -> str:
    """Under whose name a supervisor's stored offsets are kept: of one that reads a topic for another, that one's.

    So reading goes on where it was when a spec comes to name its topic by a pattern, or by its name again.
    """
    return supervisor_id.partition(OF_TOPIC)[0]


def of_supervisor(supervisor_id: str) -> Q:
    """Tasks of a supervisor, and of those that read the topics of its pattern for it."""
    return Q(supervisor_id=supervisor_id) | Q(supervisor_id__startswith=f"{supervisor_id}{OF_TOPIC}")


def consumer_group(task: Task) -> str:
    """The name of the consumer group that deals out a task's partitions; empty when none does."""
    io_config = task.io_config
    return (io_config.group or task.supervisor_id or task.datasource.name) if io_config.traits.in_consumer_group else ""


def sources_of(datasource: Datasource | int, io_config: IOConfig, owner: str) -> QuerySet[Source]:
    """The sources (one for each topic id) that this ioConfig reads for a datasource.

    ``owner``: see ``progress_name``.
    """
    return Source.objects.filter(datasource=datasource, **key_of(io_config, owner), topic=io_config.topic)


def key_of(io_config: IOConfig, owner: str) -> dict[str, str]:
    """What is the same in all of them: how their progress is remembered, and under which name."""
    return {"kind": io_config.traits.progress.kind, "group": io_config.progress_name(owner)}


def properties_of(task: Task) -> dict[str, Value]:
    """See ``connections.named.kafka_properties``."""
    return kafka_properties(task.datasource.team_id, task.io_config, task.secrets)
