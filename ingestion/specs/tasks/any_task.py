"""The union of all task specs, for the OpenAPI document."""

from __future__ import annotations

from pydantic import RootModel

from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.ingestion_spec import TaskSpec
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec, KillTaskSpec


class AnyTaskSpec(RootModel[TaskSpec | BatchTaskSpec | CompactTaskSpec | KillTaskSpec]):
    """A task spec: it reads a topic, reads files (batch task), merges segments, or deletes segments."""
