"""Which source a spec reads, how its cluster is reached, and under which name its progress is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from controlplane.connections.resolving import stored_properties
from controlplane.datasources.models import Datasource
from controlplane.segments.models import Source
from controlplane.tasks.models import Task
from ingestion.specs.io_config import keeps_offsets
from ingestion.specs.providers import Value


def kind_and_group(io_config: Mapping[str, Any], owner: str) -> tuple[Source.Kind, str]:
    """``owner``: the supervisor's id, or the datasource's name for a task submitted by hand.

    Stored offsets belong to the owner, whatever Kafka's consumer group is called: one group may be used by many.
    """
    if keeps_offsets(io_config):
        return Source.Kind.OFFSETS, owner
    return Source.Kind.SHARE_GROUP, str(io_config["groupId"])


def isolation_of(io_config: Mapping[str, Any]) -> str:
    """``read_committed`` or ``read_uncommitted``: whether reading ends where a transaction is open."""
    if keeps_offsets(io_config):
        said = io_config["consumerProperties"].get("isolation.level")
    else:
        said = io_config.get("groupConfig", {}).get("isolationLevel")
    return str(said or "read_committed").lower()


def owner_of(task: Task) -> str:
    """Under whose name a task's stored offsets are kept."""
    return task.supervisor_id or task.datasource.name


def consumer_group(task: Task) -> str:
    """The name of the consumer group that deals out a task's partitions; empty when none does."""
    io_config = task.spec["spec"]["ioConfig"]
    return str(io_config.get("groupId") or owner_of(task)) if io_config.get("assignment") == "consumer_group" else ""


def sources_of(datasource: Datasource | int, io_config: Mapping[str, Any], owner: str) -> QuerySet[Source]:
    """The sources (one for each topic id) that this ioConfig reads for a datasource."""
    kind, group = kind_and_group(io_config, owner)
    return Source.objects.filter(datasource=datasource, kind=kind, group=group, topic=io_config["topic"])


def properties_of(task: Task) -> dict[str, Value]:
    """See ``stored_properties``."""
    return stored_properties(task.spec["spec"]["ioConfig"], task.secrets)
