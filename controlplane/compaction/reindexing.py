"""Batch tasks that read segments. What the specs of ``compact`` tasks leave out is what the segments have.

A first or last value is made of such values only where the segments keep when these came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from controlplane.common.errors import InvalidInput
from controlplane.compaction.schemas import write_specs_of
from controlplane.segments.models import Segment
from controlplane.tasks import batches
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Task
from ingestion.specs.errors import SpecError, issue_at
from ingestion.specs.messages.batch_protocol import BatchAssignment
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.schema.metrics import BY_TIME, Metric
from ingestion.specs.schema.periods import AnyGranularity
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.reindexing import Changes, SegmentContents
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec, parse_compact_task

_TIME = "__time"


def start(task: Task) -> BatchAssignment:
    """What its driver is to do, from here on it alone. Raises ``InvalidInput``, with which the task has failed."""
    assignment = batches.start(task)
    ids = [s.id for s in assignment.inputs]
    try:
        if task.kind != Task.Kind.REINDEX:
            _check_first_last(assignment.spec.dataSchema, ids)
            return assignment
        batch_spec = batch_spec_for(parse_compact_task(task.spec), ids)
    except (SpecError, ValueError) as error:
        invalid = InvalidInput(f"{error}.")
        end_task(task, error=invalid.detail)
        raise invalid from None
    Task.objects.filter(pk=task.pk).update(batch_spec=batch_spec.canonical())
    return assignment.model_copy(update={"spec": batch_spec.spec})


def batch_spec_for(spec: CompactTaskSpec, ids: Collection[UUID]) -> BatchTaskSpec:
    """What it is to do with these segments. Raises ``SpecError`` and ``ValueError`` for what they do not allow."""
    batch_spec = spec.batch_task(_read_held(ids, spec))
    _check_first_last(batch_spec.spec.dataSchema, ids)
    return batch_spec


def _check_first_last(schema: DataSchema, ids: Collection[UUID]) -> None:
    """Raise ``SpecError`` for a first or last value of such values, unless these say when their records came."""
    by_time = [m for m in schema.metricsSpec if m.aggregation in BY_TIME] if schema.granularitySpec.rollup else []
    if not by_time or not ids:
        return
    ways = set(Segment.objects.filter(pk__in=ids).values_list("task_id", "schema__extents"))
    written = write_specs_of(task for task, _ in ways)
    for task, extents in sorted(way for way in ways if way[0] in written):
        sources = {m.name: m for m in DataSchema.model_validate(written[task].data_schema).metricsSpec}
        for metric in by_time:
            _check_metric(metric, sources.get(metric.field or ""), extents)


def _check_metric(metric: Metric, source: Metric | None, extents: bool) -> None:
    if source is None or source.aggregation not in BY_TIME:
        return
    if not extents:
        raise _spec_error(
            f"rows with the metric {source.name!r} ({source.type}) can't be rolled up again: some segments were "
            "written without rollup, or by an earlier version, and do not say which value came first. Set rollup to "
            "false, or omit the metric from metricsSpec",
            "granularitySpec",
            "rollup",
        )
    if source.aggregation != metric.aggregation:
        raise _spec_error(
            f"{metric.name!r} ({metric.type}) reads {source.name!r} ({source.type}), but {source.aggregation} "
            f"values can only become a {source.aggregation} value again",
            "metricsSpec",
        )


def _read_held(ids: Collection[UUID], spec: CompactTaskSpec) -> SegmentContents:
    """What these have. Raises ``SpecError`` where that is not one thing, and the spec does not say what it is to be."""
    segments = list(
        Segment.objects.filter(pk__in=ids).select_related("schema").order_by("-created_at", "-partition_num")
    )
    if not segments:
        raise SpecError([issue_at([], f"there are no segments in {spec.interval_text}")])
    changes = spec.changes
    written = write_specs_of(s.task_id for s in segments)
    says_all = None not in (changes.rollup, changes.metrics) and bool(
        changes.dimensions and changes.dimensions.dimensions
    )
    if len({s.task_id for s in segments}) > len(written) and not says_all:
        raise _spec_error(
            "Headgate no longer knows how some of the segments were written: give granularitySpec.rollup, metricsSpec "
            "and dimensionsSpec"
        )
    schemas = [DataSchema.model_validate(w.data_schema) for w in written.values()]
    return SegmentContents(
        columns=_columns(segments),
        metrics=_metrics(schemas, changes),
        rollup=all(s.granularitySpec.rollup for s in schemas),
        segment_granularity=changes.segment_granularity or _common_granularity(segments, schemas),
    )


def _columns(segments: Iterable[Segment]) -> dict[str, str]:
    """Of all, the newest's first; one that differs has all its types."""
    types: dict[str, dict[str, None]] = {}
    for columns in {s.schema_id: s.columns for s in segments}.values():
        for column in columns:
            if column["name"] != _TIME:
                types.setdefault(column["name"], {})[column["type"]] = None
    return {name: " or ".join(several) for name, several in types.items()}


def _metrics(schemas: Sequence[DataSchema], changes: Changes) -> list[Metric]:
    """All that there are, by name."""
    by_name = {m.name: m for schema in schemas for m in schema.metricsSpec}
    variants = {tuple(sorted((m.name, _merge_function(m), m.kind) for m in schema.metricsSpec)) for schema in schemas}
    if changes.metrics is None and len(variants) > 1:
        raise _spec_error("the segments were written with different metrics: give metricsSpec")
    return list(by_name.values())


def _merge_function(metric: Metric) -> str:
    """How values become one: counts are added up, and so are they in what has been written anew."""
    return "sum" if metric.aggregation == "count" else metric.aggregation


def _common_granularity(segments: Iterable[Segment], schemas: Sequence[DataSchema]) -> AnyGranularity:
    """The granularity of which all these intervals are."""
    spans = {(s.interval_start, s.interval_end) for s in segments}
    named = [*(s.granularitySpec.segmentGranularity for s in schemas), *Granularity]
    for granularity in named:
        if granularity not in (Granularity.ALL, Granularity.NONE) and _all_match(spans, granularity):
            return granularity
    raise _spec_error("the segments' intervals are of different lengths: give granularitySpec.segmentGranularity")


def _all_match(spans: Iterable[tuple[datetime, datetime]], granularity: AnyGranularity) -> bool:
    return all(granularity.bucket(start) == (start, end) for start, end in spans)


def _spec_error(message: str, *path: str) -> SpecError:
    return SpecError([issue_at(list(path), message)])
