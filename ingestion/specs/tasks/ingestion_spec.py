"""The ingestion spec of a task or supervisor, with Druid's JSON names.

Sources: Druid's documents of Kafka share-group ingestion (``index_kafka_share_group``), of the Kafka supervisor
(``kafka``; ``index_kafka`` for a task) and of the ingestion spec. Docstrings name what Headgate adds. Durations are
ISO 8601 periods or, as in Druid, milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator, model_validator

from ingestion.specs.base import SpecModel, check_plain_name
from ingestion.specs.errors import SpecError, SpecIssue, issue_at, issues_of
from ingestion.specs.formats.parser_form import without_parser
from ingestion.specs.inputs.io_config import IOConfig, KafkaIOConfig, ShareGroupIOConfig
from ingestion.specs.inputs.sources import AnyIOConfig, DruidType, source_types
from ingestion.specs.kafka.property_reading import refuse_at
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.source_traits import SourceTraits

_LONG_PERIOD = re.compile(r"P\d{6,}D")
_CENTURY = timedelta(days=36_525)
_NEVER = "P2147483647D"
BYTES_IN_MEMORY = 64 * 1024 * 1024


def _no_longer_than_a_century(value: Any) -> Any:
    """Druid's periods may be longer than a ``timedelta`` holds."""
    return _CENTURY if isinstance(value, str) and _LONG_PERIOD.fullmatch(value) else value


def _a_second_at_least(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise ValueError("must be at least one second (PT1S)")
    return value


def _never_as_none(value: Any) -> Any:
    """Druid's own answer has its default for never where nobody gave one; rows are seen there before any handoff."""
    return None if value == _NEVER else value


Pause = Annotated[timedelta, BeforeValidator(_no_longer_than_a_century), AfterValidator(_a_second_at_least)]


class SegmentWriteOutMediumFactory(SpecModel):
    """Where Druid stores the columns of an unfinished segment. It has no effect."""

    type: Literal["tmpFile", "offHeapMemory", "onHeapMemory"]


class AppendableIndexSpec(SpecModel):
    """How Druid stores rows in memory. It has no effect."""

    type: Literal["onheap"]
    preserveExistingMetrics: bool = False

    @field_validator("preserveExistingMetrics")
    @classmethod
    def _check_preserved_metrics(cls, value: bool) -> bool:
        if value:
            raise ValueError("is not supported: metrics are made of the records' fields, not of metrics in them")
        return value


def _default_bound(value: Any) -> Any:
    """Druid's 0 is a bound that it finds itself, and -1 none: here there is always one."""
    return BYTES_IN_MEMORY if value in (0, -1) and not isinstance(value, bool) else value


BytesInMemory = Annotated[int, BeforeValidator(_default_bound), Field(ge=1024 * 1024)]


class TuningConfig(SpecModel):
    """Limits. ``maxSavedParseExceptions`` limits the payloads in a report; the quarantine has them all.

    The fields from ``handoffConditionTimeout`` on are accepted for compatibility with Druid and have no effect.
    """

    type: Literal["KafkaTuningConfig", "kafka", "kafka_share_group", "index_kafka_share_group"] | None = None
    maxRowsPerSegment: int = Field(default=5_000_000, ge=1)
    maxTotalRows: int | None = Field(default=None, ge=1)
    maxRowsInMemory: int = Field(default=1_000_000, ge=1)
    maxBytesInMemory: BytesInMemory = BYTES_IN_MEMORY
    intermediatePersistPeriod: Pause = timedelta(minutes=10)
    maxPendingPersists: int = Field(default=0, ge=0, le=100)
    # None where Druid's default is never; an indexer then hands off as it comes.
    intermediateHandoffPeriod: Annotated[Pause | None, BeforeValidator(_never_as_none)] = None
    logParseExceptions: bool = False
    maxParseExceptions: int | None = Field(default=None, ge=0)
    maxSavedParseExceptions: int = Field(default=100, ge=0, le=10_000)
    indexSpec: IndexSpec = Field(default_factory=IndexSpec)
    indexSpecForIntermediatePersists: IndexSpec | None = None
    reportParseExceptions: bool = False
    resetOffsetAutomatically: bool = False
    handoffConditionTimeout: int | None = Field(default=None, ge=0)
    workerThreads: int | None = Field(default=None, ge=1)
    chatThreads: int | None = Field(default=None, ge=1)
    chatRetries: int | None = Field(default=None, ge=0)
    httpTimeout: timedelta | None = Field(default=None, gt=timedelta())
    shutdownTimeout: timedelta | None = Field(default=None, gt=timedelta())
    offsetFetchPeriod: timedelta | None = Field(default=None, ge=timedelta(seconds=5))
    segmentWriteOutMediumFactory: SegmentWriteOutMediumFactory | None = None
    appendableIndexSpec: AppendableIndexSpec | None = None
    skipBytesInMemoryOverheadCheck: bool | None = None
    skipSequenceNumberAvailabilityCheck: bool | None = None
    repartitionTransitionDuration: timedelta | None = None
    numPersistThreads: int | None = Field(default=None, ge=1)
    maxColumnsToMerge: int | None = Field(default=None, ge=-1)
    basePersistDirectory: str | None = Field(default=None, max_length=1_000)
    buildV9Directly: bool | None = None

    @property
    def parse_exceptions_limit(self) -> int | None:
        """After how many the task fails; None: never. ``reportParseExceptions`` overrides, as in Druid."""
        return 0 if self.reportParseExceptions else self.maxParseExceptions

    @property
    def saved_parse_exceptions_limit(self) -> int:
        """How many a report shows."""
        return min(self.maxSavedParseExceptions, 1) if self.reportParseExceptions else self.maxSavedParseExceptions


class IngestionSpec(SpecModel):
    """The three parts of a task's or supervisor's spec."""

    dataSchema: DataSchema
    ioConfig: AnyIOConfig
    tuningConfig: TuningConfig = Field(default_factory=TuningConfig)


def _task_type(traits: SourceTraits) -> str:
    return traits.task_type


def _supervisor_type(traits: SourceTraits) -> str:
    return traits.supervisor_type


class _Submitted(SpecModel):
    type: str
    id: Annotated[str, AfterValidator(check_plain_name)] | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    spec: IngestionSpec

    @model_validator(mode="after")
    def _check_types(self) -> Self:
        """The two types must mean the same kind of source."""
        io_config = self.spec.ioConfig
        if self.type not in (io_config.traits.task_type, io_config.traits.supervisor_type):
            raise ValueError(f"type is {self.type!r}, but ioConfig.type is {io_config.type!r}")
        return self

    @property
    def datasource(self) -> str:
        return self.spec.dataSchema.dataSource

    def with_io_config(self, io_config: IOConfig) -> Self:
        """This spec with another ioConfig of the same type."""
        return self.model_copy(update={"spec": self.spec.model_copy(update={"ioConfig": io_config})})

    def canonical(self) -> dict[str, Any]:
        """The JSON that is stored: nested form, without what has the default value."""
        return self.model_dump(mode="json", exclude_defaults=False, exclude_none=True)


class TaskSpec(_Submitted):
    """The spec of a manual task."""

    type: Annotated[str, DruidType(_task_type)]

    @field_validator("spec")
    @classmethod
    def _check_single_topic(cls, value: IngestionSpec) -> IngestionSpec:
        if value.ioConfig.topicPattern is not None:
            refuse_at("ioConfig", "topicPattern", message="is for supervisors: a task reads one topic, so use topic")
        return value

    def counted_from(self, accepted_at: datetime) -> Self:
        """The spec with the time instead of a duration as its start: see ``IOConfig``."""
        io_config = self.spec.ioConfig.counted_from(accepted_at)
        return self.model_copy(update={"spec": self.spec.model_copy(update={"ioConfig": io_config})})


class SupervisorSpec(_Submitted):
    """The spec of a supervisor, which keeps ``ioConfig.taskCount`` indexers running until it is suspended."""

    type: Annotated[str, DruidType(_supervisor_type)]
    suspended: bool = False

    def suspended_after(self, before: bool) -> bool:
        """Whether the supervisor is suspended with this spec, if it was so ``before``: it stays so unless this says."""
        return self.suspended if "suspended" in self.model_fields_set else before

    def task_spec(self, task_count: int) -> TaskSpec:
        """The spec of one of its tasks, with this number of indexers."""
        io_config = self.spec.ioConfig.model_copy(update={"taskCount": task_count})
        spec = self.spec.model_copy(update={"ioConfig": io_config})
        return TaskSpec(type=io_config.traits.task_type, context=self.context, spec=spec)


def parse_task_spec(document: Any) -> TaskSpec:
    """Read a task's JSON, flat (as in the share-group document) or nested under ``spec``. Raises ``SpecError``."""
    return parse_submitted(TaskSpec, document)


def parse_supervisor_spec(document: Any) -> SupervisorSpec:
    """Read a supervisor's JSON, flat or nested under ``spec``. Raises ``SpecError``."""
    return parse_submitted(SupervisorSpec, document)


def issues_as_written(document: Any, faults: Sequence[tuple[list[str | int], str]]) -> list[SpecIssue]:
    """Faults that were found later in a spec that could be read, told where ``document`` has what is wrong.

    ``faults``: the keys and indexes that lead there from the spec's three parts on, and the message.
    """
    flat = "spec" not in document
    older = without_parser(_nested(document) if flat else document)
    issues = [issue_at(["spec", *place], message) for place, message in faults]
    as_written = issues if older is None else [older.as_written(i) for i in issues]
    return [_flatten_issue(i) for i in as_written] if flat else as_written


_PARTS = ("dataSchema", "ioConfig", "tuningConfig")
Submitted = TypeVar("Submitted", bound=SpecModel)


def parse_submitted(
    model: type[Submitted], document: Any, completed: Callable[[dict[str, Any]], dict[str, Any]] = lambda nested: nested
) -> Submitted:
    """Read a model's JSON, flat or nested; ``completed`` may fill it in once it has today's nested form.

    Raises ``SpecError``, its places those of the document as it was written.
    """
    if not isinstance(document, dict):
        raise SpecError([issue_at([], "must be a JSON object")])
    flat = "spec" not in document
    nested = _nested(document) if flat else _without_copies(document)
    older = without_parser(nested)
    issues = [] if older is None else older.issues
    today = _with_source_type(completed(nested if older is None else older.document))
    try:
        parsed = model.model_validate(today)
    except ValidationError as error:
        faults = issues_of(error, today)
        issues = [*issues, *(faults if older is None else map(older.as_written, faults))]
    if issues:
        raise SpecError([_flatten_issue(i) for i in issues] if flat else issues)
    return parsed


def _nested(document: dict[str, Any]) -> dict[str, Any]:
    outer = {k: v for k, v in document.items() if k not in _PARTS}
    return {**outer, "spec": {k: document[k] for k in _PARTS if k in document}}


def _without_copies(document: dict[str, Any]) -> dict[str, Any]:
    """A nested document without the copies of its parts that Druid's answers have beside ``spec``."""
    return {k: v for k, v in document.items() if k not in _PARTS and not (k == "context" and v is None)}


def _with_source_type(document: dict[str, Any]) -> dict[str, Any]:
    """With the type in ioConfig too, which may leave it out."""
    spec = document.get("spec")
    io_config = spec.get("ioConfig") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(io_config, dict) or io_config.get("type") is not None:
        return document
    source_type = document.get("type")
    if source_type not in source_types():  # a fault of its own; the rest is read as what it looks like
        source_type = (ShareGroupIOConfig if "groupId" in io_config else KafkaIOConfig).NAMES[0]
    return {**document, "spec": {**spec, "ioConfig": {**io_config, "type": source_type}}}


def _flatten_issue(issue: SpecIssue) -> SpecIssue:
    return SpecIssue(issue.path.removeprefix("spec."), issue.pointer.removeprefix("/spec"), issue.message)
