"""What may be submitted as a task, for those who describe it."""

from __future__ import annotations

from pydantic import RootModel

from ingestion.specs.batch import BatchTaskSpec
from ingestion.specs.ingestion_spec import TaskSpec


class AnyTaskSpec(RootModel[TaskSpec | BatchTaskSpec]):
    """A task that reads a topic, or a batch task, which reads files."""
