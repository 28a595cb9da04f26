"""Which sources a spec reads, and under which name their progress is kept."""

from __future__ import annotations

from django.db.models import QuerySet

from controlplane.datasources.models import Datasource
from controlplane.sources.models import Source
from ingestion.specs.inputs.io_config import IOConfig

TOPIC_SEPARATOR = ":"  # between a supervisor's id and the topic, in the id of the one that reads this topic for it
FILL_MARK = f"{TOPIC_SEPARATOR}fill{TOPIC_SEPARATOR}"  # in the id of a backfill; no topic's name can make one


def offsets_owner(supervisor_id: str) -> str:
    """Under whose name a supervisor's stored offsets are kept: of one that reads a topic for another, that one's.

    So reading goes on where it was when a spec comes to name its topic by a pattern, or by its name again.
    """
    return supervisor_id.partition(TOPIC_SEPARATOR)[0]


def sources_of(datasource: Datasource | int, io_config: IOConfig, owner: str) -> QuerySet[Source]:
    """The sources (one for each topic id) that this ioConfig reads for a datasource.

    ``owner``: see ``IOConfig.progress_name``.
    """
    return Source.objects.filter(datasource=datasource, **source_key(io_config, owner), topic=io_config.topic)


def source_key(io_config: IOConfig, owner: str) -> dict[str, str]:
    """What is the same in all of them: how their progress is remembered, and under which name."""
    return {"kind": io_config.traits.progress.kind, "group": io_config.progress_name(owner)}
