"""How a config has intervals partitioned: by hash or range, as a batch task's ``partitionsSpec`` says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import F, Q
from pydantic import TypeAdapter

from controlplane.segments.models import Interval
from ingestion.specs.schema.partitions import DividingSpec, effect_of

_SPEC: TypeAdapter[DividingSpec] = TypeAdapter(DividingSpec)


@dataclass(frozen=True)
class Partitioning:
    """Of the intervals of a datasource. A whole interval is written anew by one task."""

    document: str  # JSON of the spec
    subtasks: int
    max_input_bytes: int

    @classmethod
    def of(cls, spec: DividingSpec, subtasks: int, most_input_bytes: int) -> Partitioning:
        return cls(json.dumps(spec.model_dump(mode="json", exclude_unset=True)), subtasks, most_input_bytes)

    @cached_property
    def spec(self) -> DividingSpec:
        return _SPEC.validate_json(self.document)

    @cached_property
    def effect(self) -> str:
        """How rows are dealt out by it."""
        return effect_of(self.spec)

    @property
    def tuning(self) -> dict[str, Any]:
        """The ``tuningConfig`` of a task."""
        return {
            "type": "index_parallel",
            "forceGuaranteedRollup": True,
            "partitionsSpec": json.loads(self.document),
            "maxNumConcurrentSubTasks": self.subtasks,
        }

    @property
    def is_done(self) -> Q:
        """Of intervals: one task has dealt out all rows in this way, and nothing has changed since."""
        return Q(partitioned_by=self.effect, partitioned_revision=F("revision"))

    def holds_for(self, interval: Interval) -> bool:
        """Whether a read interval is one of them."""
        return (interval.partitioned_by, interval.partitioned_revision) == (self.effect, interval.revision)
