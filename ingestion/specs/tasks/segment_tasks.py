"""Tasks on existing segments, with Druid's JSON names: ``compact`` merges segments or rewrites their rows, ``kill``
deletes unused segments.

Source: Druid's reference of compaction and of deleting data. Messages name Druid's options that Headgate refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from ingestion.specs.base import SpecModel, check_plain_name, not_supported, to_utc
from ingestion.specs.errors import SpecError, error_text, issue_at, issues_of
from ingestion.specs.limits import MAX_COLUMNS, FieldName
from ingestion.specs.schema.data_schema import DimensionsSpec
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.schema.metrics import Metric
from ingestion.specs.schema.periods import AnyGranularity
from ingestion.specs.tasks.batch import BatchTaskSpec, BatchTuningConfig
from ingestion.specs.tasks.batch import options_without_effect as batch_options_without_effect
from ingestion.specs.tasks.reindexing import (
    Changes,
    CompactGranularitySpec,
    CompactTransformSpec,
    SegmentContents,
    check_interval,
    data_schema,
)

SEGMENT_TASKS = ("compact", "kill")
MAX_VERSIONS = 1_000
MAX_SEGMENTS = 2**31 - 1
DEFAULT_BATCH = 100  # segments that are deleted at once
PRIORITY = 25  # Druid's, of a compaction


def _check_interval(value: str) -> str:
    start, end = interval_ms(value)
    if start == end:
        raise ValueError("is empty: its end must be after its start")
    return value


Interval = Annotated[FieldName, AfterValidator(_check_interval)]
Name = Annotated[str, AfterValidator(check_plain_name)]


class CompactInputSpec(SpecModel):
    """The segments whose intervals overlap this interval."""

    type: Literal["interval"]
    interval: Interval
    sha256OfSortedSegmentIds: Annotated[None, not_supported("is not supported: a run merges what exists then")] = None


class CompactIOConfig(SpecModel):
    """The segments to merge. The last two fields have an effect only if the segment granularity changes."""

    type: Literal["compact"]
    inputSpec: CompactInputSpec
    dropExisting: bool = False
    allowNonAlignedInterval: bool = False


class CompactionRunner(SpecModel):
    """The engine of compaction: only Druid's type ``native``, because Headgate has one engine."""

    type: Literal["native"]


class CompactTaskSpec(SpecModel):
    """Merges the segments of an interval into fewer. Rows do not change unless one of the specs changes them."""

    type: Literal["compact"]
    id: Name | None = None
    dataSource: Name
    ioConfig: CompactIOConfig | None = None
    interval: Interval | None = None  # Druid's older form
    tuningConfig: BatchTuningConfig = Field(default_factory=BatchTuningConfig)
    context: dict[str, Any] = Field(default_factory=dict)
    compactionRunner: CompactionRunner | None = None
    segments: Annotated[None, not_supported("is not supported: give an interval in ioConfig.inputSpec")] = None
    granularitySpec: CompactGranularitySpec | None = None
    segmentGranularity: AnyGranularity | None = None  # an older form of the above
    dimensionsSpec: DimensionsSpec | None = None
    dimensions: DimensionsSpec | None = None  # as above
    metricsSpec: Annotated[list[Metric], Field(max_length=MAX_COLUMNS)] | None = None
    transformSpec: CompactTransformSpec | None = None
    projections: Annotated[None, not_supported("is not supported: queries read the rows")] = None

    @model_validator(mode="after")
    def _check_single_interval(self) -> Self:
        if (self.ioConfig is None) == (self.interval is None):
            raise ValueError("give an interval in ioConfig.inputSpec or in the older field interval, not both")
        return self

    @field_validator("segmentGranularity", mode="before")
    @classmethod
    def _accept_granularity_name(cls, value: Any) -> Any:
        try:
            return CompactGranularitySpec(segmentGranularity=value).segmentGranularity
        except ValidationError as error:
            raise ValueError(error_text(error.errors()[0])) from None

    @model_validator(mode="after")
    def _check_granularities(self) -> Self:
        inner = self.granularitySpec.segmentGranularity if self.granularitySpec else None
        if None not in (inner, self.segmentGranularity) and inner != self.segmentGranularity:
            raise ValueError("segmentGranularity and granularitySpec.segmentGranularity differ: omit the former")
        if self.dimensions is not None and self.dimensionsSpec is not None:
            raise ValueError("give dimensionsSpec or its older form dimensions, not both")
        return self

    @model_validator(mode="after")
    def _check_rewrite(self) -> Self:
        changes = self.changes
        if changes.segment_granularity is not None:
            check_interval(self.span_ms, changes.segment_granularity)
        if changes.filter is not None and not (self.ioConfig is not None and self.ioConfig.dropExisting):
            raise ValueError(
                "transformSpec.filter needs ioConfig.dropExisting true. Without it, Druid does not change an interval "
                "whose rows are all filtered, but Headgate would remove its rows"
            )
        if self.rewrites_rows:
            self.batch_task(None)
        return self

    @property
    def rewrites_rows(self) -> bool:
        """Whether it is a batch task in other words; else segments are merged within their intervals."""
        return self.changes.any or self.tuningConfig.dividing is not None

    @property
    def changes(self) -> Changes:
        """What it makes of the rows, other than to put them into fewer segments."""
        granularity = self.granularitySpec or CompactGranularitySpec()
        return Changes(
            segment_granularity=granularity.segmentGranularity or self.segmentGranularity,
            query_granularity=granularity.queryGranularity,
            rollup=granularity.rollup,
            dimensions=self.dimensionsSpec or self.dimensions,
            metrics=None if self.metricsSpec is None else tuple(self.metricsSpec),
            filter=self.transformSpec.filter if self.transformSpec else None,
        )

    def batch_task(self, contents: SegmentContents | None) -> BatchTaskSpec:
        """The batch task that rewrites the rows. Raises ``ValueError``; ``SpecError`` for what the segments have."""
        kind = self.tuningConfig.type or "index_parallel"
        source = {"type": "druid", "dataSource": self.dataSource, "interval": self.interval_text}
        document = {
            "dataSchema": data_schema(self.dataSource, self.changes, contents),
            "ioConfig": {"type": kind, "inputSource": source},
            "tuningConfig": self.tuningConfig,
        }
        try:
            return BatchTaskSpec.model_validate({"type": kind, "spec": document})
        except ValidationError as error:
            raise ValueError(error_text(error.errors()[0])) from None

    @property
    def span_ms(self) -> tuple[int, int]:
        """What is merged, in milliseconds, half-open."""
        return interval_ms(self.interval_text)

    @property
    def interval_text(self) -> str:
        """The interval as it is written."""
        return self.interval or (self.ioConfig.inputSpec.interval if self.ioConfig else "")

    @property
    def priority(self) -> int:
        """Jobs of a higher one come first."""
        priority = self.context.get("priority")
        if isinstance(priority, int) and not isinstance(priority, bool) and abs(priority) <= 1000:
            return priority
        return PRIORITY

    def options_without_effect(self) -> list[str]:
        """What it sets that does not do here what it says in Druid, by path and with the reason."""
        if self.rewrites_rows:
            options = batch_options_without_effect(self.batch_task(None).canonical())
        else:
            tuning = self.tuningConfig.model_dump(exclude_unset=True, exclude_none=True)
            left = [n for n in tuning if n not in ("type", "partitionsSpec", "maxRowsPerSegment", "indexSpec")]
            options = [f"tuningConfig.{name}: {_APPLICATION}" for name in left]
        if self.ioConfig is not None and self.ioConfig.dropExisting:
            options.append("ioConfig.dropExisting: merged segments always replace their inputs")
        if self.rewrites_rows and self.context:
            options.append("context: Headgate does not read it")
        elif self.context.keys() - {"priority"}:
            options.append("context: only priority has an effect")
        return options


_APPLICATION = "the compaction application does this for all datasources"


class KillTaskSpec(SpecModel):
    """Deletes the unused segments within an interval permanently."""

    type: Literal["kill"]
    id: Name | None = None
    dataSource: Name
    interval: Interval
    versions: Annotated[list[FieldName], Field(min_length=1, max_length=MAX_VERSIONS)] | None = None
    markAsUnused: bool = False
    batchSize: int = Field(default=DEFAULT_BATCH, ge=1, le=MAX_SEGMENTS)
    limit: int | None = Field(default=None, ge=1, le=MAX_SEGMENTS)
    maxUsedStatusLastUpdatedTime: Annotated[datetime, AfterValidator(to_utc)] | None = None
    context: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        if self.markAsUnused and (self.limit is not None or self.maxUsedStatusLastUpdatedTime is not None):
            raise ValueError("markAsUnused applies to the whole interval: omit limit and maxUsedStatusLastUpdatedTime")
        return self

    @property
    def span_ms(self) -> tuple[int, int]:
        """Within which segments lie, in milliseconds, half-open."""
        return interval_ms(self.interval)

    @property
    def interval_text(self) -> str:
        """The interval as it is written."""
        return self.interval

    def options_without_effect(self) -> list[str]:
        """What it sets that does not do here what it says in Druid."""
        return ["context: Headgate does not read it"] if self.context else []


def is_segment_task(document: Any) -> bool:
    """Whether a document, as it is written, is one of these."""
    return isinstance(document, Mapping) and document.get("type") in SEGMENT_TASKS


def parse_segment_task(document: Any) -> CompactTaskSpec | KillTaskSpec:
    """Read one of these. Raises ``SpecError``."""
    if not is_segment_task(document):
        raise SpecError([issue_at(["type"], f"must be one of {', '.join(SEGMENT_TASKS)}")])
    if document["type"] == "compact":
        return parse_compact_task(document)
    try:
        return KillTaskSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(issues_of(error, document)) from None


def parse_compact_task(document: Any) -> CompactTaskSpec:
    """Parse a ``compact`` task. Raises ``SpecError``."""
    try:
        return CompactTaskSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(issues_of(error, document)) from None
