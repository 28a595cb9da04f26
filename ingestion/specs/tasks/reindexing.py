"""The changes that a ``compact`` task makes to rows, and the equivalent batch spec.

Source: Druid's reference of compaction. The segments define what the task's spec leaves out (``SegmentContents``).
This is known only when the task starts. Before, the spec is checked without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, field_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.errors import SpecError, issue_at
from ingestion.specs.schema.data_schema import DimensionsSpec
from ingestion.specs.schema.filters import Filter, within_limits
from ingestion.specs.schema.granularity import MAX_TIME, MIN_TIME, Granularity
from ingestion.specs.schema.metrics import CountMetric, Metric, NumberMetric, StringMetric, unfiltered_metric
from ingestion.specs.schema.periods import AnyGranularity, granularity_of
from ingestion.specs.schema.sketch_metrics import HllMetric, ThetaMetric

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# A column's type → the dimension that holds what it holds. Lists are in their order already.
_DIMENSIONS: dict[str, dict[str, str]] = {
    "string": {"type": "string"},
    "strings": {"type": "string", "multiValueHandling": "ARRAY"},
    "long": {"type": "long"},
    "double": {"type": "double"},
    "boolean": {"type": "auto"},
    "json": {"type": "json"},
}


class CompactGranularitySpec(SpecModel):
    """The new granularities and rollup. Values that are left out do not change."""

    segmentGranularity: AnyGranularity | None = None
    queryGranularity: AnyGranularity | None = None
    rollup: bool | None = None

    @field_validator("segmentGranularity", "queryGranularity", mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        return None if value is None else granularity_of(value)

    @field_validator("segmentGranularity")
    @classmethod
    def _check_granularity(cls, value: AnyGranularity | None) -> AnyGranularity | None:
        if value in (Granularity.ALL, Granularity.NONE):
            raise ValueError(f"{value} is not supported: give the length of the new segments' intervals")
        return value


class CompactTransformSpec(SpecModel):
    """The filter of the rows that stay."""

    filter: Annotated[Filter, AfterValidator(within_limits)] | None = None


@dataclass(frozen=True)
class Changes:
    """The changes of the rows. None means that the segments' own values stay."""

    segment_granularity: AnyGranularity | None = None
    query_granularity: AnyGranularity | None = None
    rollup: bool | None = None
    dimensions: DimensionsSpec | None = None
    metrics: Sequence[Metric] | None = None
    filter: Filter | None = None

    @property
    def any(self) -> bool:
        """Whether the task rewrites rows."""
        return self != Changes()


@dataclass(frozen=True)
class SegmentContents:
    """The columns and metrics of the segments that a task reads."""

    columns: Mapping[str, str]  # name → type, without the time; in the order of the newest segment
    metrics: Sequence[Metric]
    rollup: bool
    segment_granularity: AnyGranularity


def check_interval(span_ms: tuple[int, int], granularity: AnyGranularity) -> None:
    """Raise ``ValueError`` unless it begins and ends where intervals of the granularity do."""
    for ms in span_ms:
        time = min(max(_EPOCH + ms * _MILLISECOND, MIN_TIME), MAX_TIME)
        if granularity.bucket(time)[0] != time:
            raise ValueError(
                f"the interval must begin and end at boundaries of the new segmentGranularity, but "
                f"{time:%Y-%m-%dT%H:%M:%SZ} is not one. Choose whole intervals. allowNonAlignedInterval is not "
                "supported here"
            )


def data_schema(datasource: str, changes: Changes, contents: SegmentContents | None) -> dict[str, Any]:
    """The ``dataSchema`` in JSON. Without ``contents`` it has only the given changes. Raises ``SpecError``."""
    rollup = changes.rollup
    if rollup is None:
        rollup = contents is not None and contents.rollup
    metrics = (
        _dump_metrics(changes.metrics)
        if changes.metrics is not None
        else _merging_metrics(contents.metrics)
        if contents
        else []
    )
    length = changes.segment_granularity or (contents.segment_granularity if contents else Granularity.DAY)
    granularity = {"segmentGranularity": length, "queryGranularity": changes.query_granularity or Granularity.NONE}
    return {
        "dataSource": datasource,
        "timestampSpec": {"column": "__time", "format": "millis"},
        "dimensionsSpec": _dimensions(changes, contents),
        "metricsSpec": metrics,
        "granularitySpec": {**granularity, "rollup": rollup},
        "transformSpec": {"filter": changes.filter},
    }


def _dimensions(changes: Changes, contents: SegmentContents | None) -> Any:
    """Those given, or as in Druid the segments' columns that are no metrics there."""
    dimensions_spec = changes.dimensions or DimensionsSpec()
    if (
        contents is None
        or dimensions_spec.dimensions
        or dimensions_spec.useSchemaDiscovery
        or dimensions_spec.includeAllDimensions
    ):
        return dimensions_spec
    left_out = {m.name for m in contents.metrics} | set(dimensions_spec.dimensionExclusions)
    names = [name for name in contents.columns if name not in left_out]
    clashes = sorted({m.name for m in changes.metrics or ()} & set(names))
    if clashes:
        raise _spec_error(
            "dimensionsSpec", f"list the dimensions: {clashes[0]!r} is a dimension of the segments and a new metric"
        )
    other = next((n for n in names if contents.columns[n] not in _DIMENSIONS), None)
    if other is not None:
        raise _spec_error(
            "dimensionsSpec", f"list the dimensions: {other!r} has the type {contents.columns[other]} in the segments"
        )
    dimensions = [{"name": name, **_DIMENSIONS[contents.columns[name]]} for name in names]
    return {"dimensions": dimensions, "dimensionExclusions": sorted(left_out & contents.columns.keys())}


def _dump_metrics(metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    return [m.model_dump(mode="json", by_alias=True, exclude_none=True) for m in metrics]


def _merging_metrics(metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """What makes of the values of rows the value of all of them: Druid's combining aggregators."""
    return [_combining_metric(m) for m in metrics]


def _combining_metric(metric: Metric) -> dict[str, Any]:
    inner, same_name = unfiltered_metric(metric), {"name": metric.name, "fieldName": metric.name}
    if isinstance(inner, CountMetric):
        return {**same_name, "type": "longSum"}
    if isinstance(inner, NumberMetric):
        return {**same_name, "type": inner.type}
    if isinstance(inner, StringMetric):
        return {**same_name, "type": inner.type, "maxStringBytes": inner.maxStringBytes}
    if isinstance(inner, HllMetric):
        return {**same_name, "type": "HLLSketchMerge", "lgK": inner.lgK, "tgtHllType": inner.tgtHllType}
    if isinstance(inner, ThetaMetric):
        return {**same_name, "type": inner.type, "size": inner.size, "isInputThetaSketch": True}
    return {**same_name, "type": inner.type, "k": inner.k}


def _spec_error(path: str, message: str) -> SpecError:
    return SpecError([issue_at(list(path.split(".")), message)])
