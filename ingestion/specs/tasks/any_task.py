"""What may be submitted as a task, for those who describe it."""

from __future__ import annotations

from pydantic import RootModel

from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.ingestion_spec import TaskSpec
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec, KillTaskSpec


class AnyTaskSpec(RootModel[TaskSpec | BatchTaskSpec | CompactTaskSpec | KillTaskSpec]):
    """A task that reads a topic; a batch task, which reads files; one that merges segments, or deletes them."""
