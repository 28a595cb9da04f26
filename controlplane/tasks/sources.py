"""How a task's cluster is reached, and under which names it reads."""

from __future__ import annotations

from django.db.models import Q

from controlplane.connections.named_connections import kafka_properties
from controlplane.sources.spec_sources import TOPIC_SEPARATOR, offsets_owner
from controlplane.tasks.models import Task
from ingestion.specs.kafka.providers import Value


def owner_of(task: Task) -> str:
    """Under whose name a task's stored offsets are kept."""
    return offsets_owner(task.supervisor_id) or task.datasource.name


def supervisor_tasks(supervisor_id: str) -> Q:
    """Tasks of a supervisor, and of those that read the topics of its pattern for it."""
    return Q(supervisor_id=supervisor_id) | Q(supervisor_id__startswith=f"{supervisor_id}{TOPIC_SEPARATOR}")


def consumer_group(task: Task) -> str:
    """The name of the consumer group that deals out a task's partitions; empty when none does."""
    io_config = task.io_config
    return (io_config.group or task.supervisor_id or task.datasource.name) if io_config.traits.in_consumer_group else ""


def properties_of(task: Task) -> dict[str, Value]:
    """See ``connections.named.kafka_properties``."""
    return kafka_properties(task.datasource.team_id, task.io_config, task.secrets)
