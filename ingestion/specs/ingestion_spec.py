"""The ingestion spec of a share-group task or supervisor, in Druid's JSON names.

Sources: the Kafka share-group ingestion document (``index_kafka_share_group``) and Druid's ingestion spec reference.
What Headgate adds says so in its docstring. Durations are ISO 8601 periods or, where Druid says so, milliseconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ingestion.specs.errors import SpecError, SpecIssue, issue_at, issues_of
from ingestion.specs.filters import Filter
from ingestion.specs.granularity import Granularity
from ingestion.specs.joda import strptime_patterns
from ingestion.specs.kafka_properties import check_kafka_properties
from ingestion.specs.metrics import Metric
from ingestion.specs.periods import AnyGranularity, granularity_of

SHARE_GROUP_TYPE = "index_kafka_share_group"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _a_plain_name(value: str) -> str:
    """Names become parts of paths: nothing that could lead elsewhere."""
    if not _NAME.fullmatch(value) or ".." in value:
        raise ValueError(
            "must be 1 to 200 letters, digits, '_', '-' or '.', start with a letter or digit, and hold no '..'"
        )
    return value


class SpecModel(BaseModel):
    """Frozen, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


TIME_FORMATS = ("auto", "iso", "millis", "micro", "nano", "posix", "ruby")


class TimestampSpec(SpecModel):
    """Where a record's time is. ``format``: one of ``TIME_FORMATS``, a Joda pattern, or one with strptime's ``%``."""

    column: str = Field(default="timestamp", min_length=1)
    format: str = Field(default="auto", min_length=1)
    missingValue: datetime | None = None

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value.lower() in TIME_FORMATS:
            return value.lower()
        if "%" not in value:
            _check_joda(value)
        return value

    @field_validator("missingValue")
    @classmethod
    def _in_utc(cls, value: datetime | None) -> datetime | None:
        return _utc(value)


def _check_joda(pattern: str) -> None:
    try:
        strptime_patterns(pattern)
    except ValueError as error:
        names = ", ".join(TIME_FORMATS)
        raise ValueError(f"must be {names}, or a pattern such as yyyy-MM-dd HH:mm:ss; {error}") from None


class DimensionSchema(SpecModel):
    """One named column and its type; a bare name in the JSON means type string.

    ``multiValueHandling``: the order of a string column's lists. ``createBitmapIndex`` has no counterpart in Parquet.
    """

    name: str = Field(min_length=1)
    type: Literal["string", "long", "float", "double", "json", "auto"] = "string"
    multiValueHandling: Literal["SORTED_ARRAY", "SORTED_SET", "ARRAY"] = "SORTED_ARRAY"
    createBitmapIndex: bool = True

    @field_validator("multiValueHandling", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("name")
    @classmethod
    def _not_time(cls, value: str) -> str:
        if value == "__time":
            raise ValueError("__time is the segment's own time column and can't be a dimension")
        return value


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class DimensionsSpec(SpecModel):
    """Which columns are stored: those named, or with ``useSchemaDiscovery`` every field of the records."""

    dimensions: list[DimensionSchema] = Field(default_factory=list)
    dimensionExclusions: list[str] = Field(default_factory=list)
    useSchemaDiscovery: bool = False
    includeAllDimensions: bool = False
    spatialDimensions: list[Any] = Field(default_factory=list)

    @field_validator("spatialDimensions")
    @classmethod
    def _no_spatial_index(cls, value: list[Any]) -> list[Any]:
        if value:
            raise ValueError("Parquet has no spatial index: name the coordinates as dimensions of type double")
        return value

    @field_validator("dimensions", mode="before")
    @classmethod
    def _names_to_schemas(cls, value: Any) -> Any:
        return [_named(v) for v in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _no_doubles(self) -> DimensionsSpec:
        names = [d.name for d in self.dimensions]
        doubles = sorted({n for n in names if names.count(n) > 1})
        if doubles:
            raise ValueError(f"dimensions are named twice: {', '.join(doubles)}")
        excluded = sorted(set(names) & set(self.dimensionExclusions))
        if excluded:
            raise ValueError(f"dimensions are both named and excluded: {', '.join(excluded)}")
        return self

    @property
    def discovers(self) -> bool:
        """Whether fields that are not named become columns too (Druid: also when no dimension is named)."""
        return self.useSchemaDiscovery or self.includeAllDimensions or not self.dimensions


class GranularitySpec(SpecModel):
    """How long a segment's interval is, to what a row's time is cut down, and whether equal rows become one.

    ``intervals`` is for Druid's batch tasks: taken, and without effect on a stream.
    """

    type: Literal["uniform"] = "uniform"
    segmentGranularity: AnyGranularity = Granularity.DAY
    queryGranularity: AnyGranularity = Granularity.NONE
    rollup: bool = False
    intervals: list[str] | None = None

    @field_validator("segmentGranularity", "queryGranularity", mode="before")
    @classmethod
    def _a_name_or_an_object(cls, value: Any) -> Any:
        return granularity_of(value)

    @field_validator("segmentGranularity")
    @classmethod
    def _a_real_interval(cls, value: AnyGranularity) -> AnyGranularity:
        if value is Granularity.NONE:
            raise ValueError("NONE would make a segment per millisecond; use SECOND or longer")
        if not isinstance(value, Granularity) and (value.fixed_ms or (0, 1000))[1] < 1000:
            raise ValueError("a segment's interval is a second at least")
        return value


class ExpressionTransform(SpecModel):
    """A field that an SQL expression makes of a record's fields; it shadows a field of its name."""

    type: Literal["expression"]
    name: str = Field(min_length=1)
    expression: str = Field(min_length=1, max_length=10_000)


class TransformSpec(SpecModel):
    """Which fields are made, and which rows are kept."""

    transforms: list[ExpressionTransform] = Field(default_factory=list)
    filter: Filter | None = None

    @model_validator(mode="after")
    def _no_doubles(self) -> TransformSpec:
        names = [t.name for t in self.transforms]
        doubles = sorted({n for n in names if names.count(n) > 1})
        if doubles:
            raise ValueError(f"transforms are named twice: {', '.join(doubles)}")
        return self


class DataSchema(SpecModel):
    """What a record becomes."""

    dataSource: Annotated[str, AfterValidator(_a_plain_name)]
    timestampSpec: TimestampSpec
    dimensionsSpec: DimensionsSpec = Field(default_factory=DimensionsSpec)
    metricsSpec: list[Metric] = Field(default_factory=list)
    granularitySpec: GranularitySpec = Field(default_factory=GranularitySpec)
    transformSpec: TransformSpec = Field(default_factory=TransformSpec)

    @model_validator(mode="after")
    def _one_column_a_name(self) -> DataSchema:
        names = [*(d.name for d in self.dimensionsSpec.dimensions), *(m.name for m in self.metricsSpec)]
        doubles = sorted({n for n in names if names.count(n) > 1})
        if doubles:
            raise ValueError(f"columns are named twice among dimensions and metrics: {', '.join(doubles)}")
        if "__record_time" in names:
            raise ValueError("__record_time is a name of the decoder's own and can't be a dimension or metric")
        return self

    @property
    def undiscovered(self) -> frozenset[str]:
        """Fields that never become columns by discovery: as in Druid also those that metrics read or are named as."""
        metrics = {m.name for m in self.metricsSpec} | {m.field for m in self.metricsSpec if m.field is not None}
        excluded = {*self.dimensionsSpec.dimensionExclusions, self.timestampSpec.column, "__time"}
        return frozenset(metrics | excluded)


class JsonInputFormat(SpecModel):
    """Records are JSON objects, one each."""

    type: Literal["json"]


class IdleConfig(SpecModel):
    """When a task that was submitted by hand ends by itself: nothing new for this long and everything settled."""

    enabled: bool = True
    inactiveAfterMillis: int = Field(default=20_000, ge=1_000)


class GroupConfig(SpecModel):
    """Headgate's own: the share group's dynamic configuration on the broker. Bounds are the broker's."""

    recordLockDurationMs: int = Field(default=30_000, ge=1_000, le=3_600_000)
    deliveryCountLimit: int = Field(default=10, ge=2, le=100)
    isolationLevel: Literal["read_committed", "read_uncommitted"] = "read_committed"


class ShareGroupIOConfig(SpecModel):
    """Where the records come from. ``taskCount`` and all below it are Headgate's additions to the share-group task."""

    type: Literal["index_kafka_share_group", "kafka_share_group"] | None = None
    topic: str
    groupId: str = Field(min_length=1, max_length=249)
    consumerProperties: dict[str, str]
    inputFormat: JsonInputFormat
    pollTimeout: int = Field(default=2000, ge=1, le=60_000)
    useEarliestOffset: bool = True
    taskCount: int = Field(default=1, ge=1, le=1000)
    replicas: Literal[1] = 1
    consumersPerIndexer: int = Field(default=4, ge=1, le=32)
    lateMessageRejectionStartDateTime: datetime | None = None
    lateMessageRejectionPeriod: timedelta | None = None
    earlyMessageRejectionPeriod: timedelta | None = None
    idleConfig: IdleConfig = Field(default_factory=IdleConfig)
    groupConfig: GroupConfig = Field(default_factory=GroupConfig)

    @field_validator("topic")
    @classmethod
    def _a_topic_name(cls, value: str) -> str:
        if not _TOPIC.fullmatch(value) or value in (".", ".."):
            raise ValueError("must be 1 to 249 letters, digits, '.', '_' or '-'")
        return value

    @field_validator("consumerProperties", mode="before")
    @classmethod
    def _text_values(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: _property_text(v) for k, v in value.items()}

    @field_validator("consumerProperties")
    @classmethod
    def _allowed_properties(cls, value: dict[str, str]) -> dict[str, str]:
        check_kafka_properties(value)
        return value

    @field_validator("lateMessageRejectionStartDateTime")
    @classmethod
    def _in_utc(cls, value: datetime | None) -> datetime | None:
        return _utc(value)

    @model_validator(mode="after")
    def _one_late_rejection(self) -> ShareGroupIOConfig:
        if self.lateMessageRejectionPeriod is not None and self.lateMessageRejectionStartDateTime is not None:
            raise ValueError("give lateMessageRejectionPeriod or lateMessageRejectionStartDateTime, not both")
        return self

    @property
    def bootstrap_servers(self) -> str:
        return self.consumerProperties["bootstrap.servers"]


class TuningConfig(SpecModel):
    """Limits. ``maxSavedParseExceptions`` bounds the payloads a report shows; the quarantine keeps them all."""

    type: Literal["KafkaTuningConfig", "kafka", "kafka_share_group", "index_kafka_share_group"] | None = None
    maxRowsPerSegment: int = Field(default=5_000_000, ge=1)
    maxRowsInMemory: int = Field(default=150_000, ge=1)
    maxBytesInMemory: int = Field(default=64 * 1024 * 1024, ge=1024 * 1024)
    logParseExceptions: bool = False
    maxParseExceptions: int | None = Field(default=None, ge=0)
    maxSavedParseExceptions: int = Field(default=100, ge=0, le=10_000)
    reportParseExceptions: bool = False

    @property
    def most_parse_exceptions(self) -> int | None:
        """After how many the task fails; None: never. ``reportParseExceptions`` overrides, as in Druid."""
        return 0 if self.reportParseExceptions else self.maxParseExceptions


class IngestionSpec(SpecModel):
    """The three parts that a task and a supervisor share."""

    dataSchema: DataSchema
    ioConfig: ShareGroupIOConfig
    tuningConfig: TuningConfig = Field(default_factory=TuningConfig)


class _Submitted(SpecModel):
    type: Literal["index_kafka_share_group"]
    id: Annotated[str, AfterValidator(_a_plain_name)] | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    spec: IngestionSpec

    @property
    def datasource(self) -> str:
        return self.spec.dataSchema.dataSource

    def canonical(self) -> dict[str, Any]:
        """The JSON that is stored: nested form, without what has the default value."""
        return self.model_dump(mode="json", exclude_defaults=False, exclude_none=True)


class TaskSpec(_Submitted):
    """A task submitted by hand."""


class SupervisorSpec(_Submitted):
    """A supervisor: keeps ``ioConfig.taskCount`` indexers alive until suspended."""

    suspended: bool = False


def parse_task_spec(document: Any) -> TaskSpec:
    """Read a task's JSON, flat (as in the share-group document) or nested under ``spec``. Raises ``SpecError``."""
    return _parse(TaskSpec, document)


def parse_supervisor_spec(document: Any) -> SupervisorSpec:
    """Read a supervisor's JSON, flat or nested under ``spec``. Raises ``SpecError``."""
    return _parse(SupervisorSpec, document)


_PARTS = ("dataSchema", "ioConfig", "tuningConfig")
Submitted = TypeVar("Submitted", bound=_Submitted)


def _parse(model: type[Submitted], document: Any) -> Submitted:
    if not isinstance(document, dict):
        raise SpecError([issue_at([], "must be a JSON object")])
    flat = "spec" not in document
    nested = _nested(document) if flat else document
    try:
        return model.model_validate(nested)
    except ValidationError as error:
        issues = issues_of(error, nested)
        raise SpecError([_flattened(i) for i in issues] if flat else issues) from None


def _nested(document: dict[str, Any]) -> dict[str, Any]:
    outer = {k: v for k, v in document.items() if k not in _PARTS}
    return {**outer, "spec": {k: document[k] for k in _PARTS if k in document}}


def _flattened(issue: SpecIssue) -> SpecIssue:
    return SpecIssue(issue.path.removeprefix("spec."), issue.pointer.removeprefix("/spec"), issue.message)


def _property_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
