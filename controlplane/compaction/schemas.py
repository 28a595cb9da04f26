"""Under which schema a segment was written, by the task or the job that wrote it.

Rows of one segment must mean the same: whether equal ones were made one, and which columns are metrics of what kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from controlplane.compaction.models import Job
from controlplane.tasks.models import Task
from ingestion.specs.errors import SpecError
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.metrics import BY_TIME
from ingestion.specs.schema.partitions import effect_of
from ingestion.specs.tasks.batch import BatchSpec, is_batch, parse_batch_spec
from ingestion.specs.tasks.ingestion_spec import parse_task_spec

_KEPT_FIELDS = {"dataSource", "metricsSpec", "granularitySpec"}


@dataclass(frozen=True)
class WriteSpec:
    """How a task wrote its segments."""

    data_schema: dict[str, Any]
    index_spec: dict[str, Any]
    partitioned_by: str = ""  # how it has dealt out rows, where it has

    def kind(self, extents: bool) -> str:
        """Equal for segments that can be merged with each other. ``extents``: they have these."""
        schema = DataSchema.model_validate(self.data_schema)
        metrics = sorted((m.name, m.aggregation, m.kind) for m in schema.metricsSpec)
        return json.dumps([schema.granularitySpec.rollup, self.rolls_up(extents), metrics])

    def rolls_up(self, extents: bool) -> bool:
        """Whether equal rows become one: where a metric is a first or last value, only of segments with extents."""
        schema = DataSchema.model_validate(self.data_schema)
        by_time = not BY_TIME.isdisjoint(m.aggregation for m in schema.metricsSpec)
        return schema.granularitySpec.rollup and (extents or not by_time)


def write_specs_of(task_ids: Iterable[str]) -> dict[str, WriteSpec]:
    """By task or job, of those that are still known."""
    ids = set(task_ids)
    jobs = Job.objects.filter(pk__in=ids).values_list("pk", "data_schema", "index_spec", "partitioned_by")
    by_id = {pk: WriteSpec(*how) for pk, *how in jobs}
    tasks = Task.objects.filter(pk__in=ids - by_id.keys())
    for pk, spec, batch_spec in tasks.values_list("pk", "spec", "batch_spec"):
        write_spec = _write_spec_of(batch_spec or spec)
        if write_spec is not None:
            by_id[pk] = write_spec
    return by_id


def _write_spec_of(document: dict[str, Any]) -> WriteSpec | None:
    try:
        spec = parse_batch_spec(document).spec if is_batch(document) else parse_task_spec(document).spec
    except SpecError:
        return None  # of an older version
    schema = spec.dataSchema.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data_schema = {name: value for name, value in schema.items() if name in _KEPT_FIELDS}
    data_schema["timestampSpec"] = {"column": "__time", "format": "millis"}
    index_spec = spec.tuningConfig.indexSpec.model_dump(mode="json", exclude_defaults=True)
    dividing = spec.tuningConfig.dividing if isinstance(spec, BatchSpec) else None
    return WriteSpec(data_schema, index_spec, effect_of(dividing) if dividing else "")
