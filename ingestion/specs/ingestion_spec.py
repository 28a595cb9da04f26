"""The ingestion spec of a share-group task or supervisor, in Druid's JSON names.

Sources: the Kafka share-group ingestion document (``index_kafka_share_group``) and Druid's ingestion spec reference.
What Headgate adds says so in its docstring. Durations are ISO 8601 periods or, where Druid says so, milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from ingestion.specs.base import SpecModel, a_plain_name, utc
from ingestion.specs.data_schema import DataSchema
from ingestion.specs.errors import SpecError, SpecIssue, issue_at, issues_of
from ingestion.specs.index_spec import IndexSpec
from ingestion.specs.input_format import InputFormat
from ingestion.specs.kafka_properties import check_kafka_properties
from ingestion.specs.parser_form import without_parser

SHARE_GROUP_TYPE = "index_kafka_share_group"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


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
    inputFormat: InputFormat
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
        return utc(value)

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
    indexSpec: IndexSpec = Field(default_factory=IndexSpec)
    indexSpecForIntermediatePersists: dict[str, Any] | None = None
    reportParseExceptions: bool = False

    @property
    def most_parse_exceptions(self) -> int | None:
        """After how many the task fails; None: never. ``reportParseExceptions`` overrides, as in Druid."""
        return 0 if self.reportParseExceptions else self.maxParseExceptions

    @property
    def most_saved_parse_exceptions(self) -> int:
        """How many a report shows."""
        return min(self.maxSavedParseExceptions, 1) if self.reportParseExceptions else self.maxSavedParseExceptions


class IngestionSpec(SpecModel):
    """The three parts that a task and a supervisor share."""

    dataSchema: DataSchema
    ioConfig: ShareGroupIOConfig
    tuningConfig: TuningConfig = Field(default_factory=TuningConfig)


class _Submitted(SpecModel):
    type: Literal["index_kafka_share_group"]
    id: Annotated[str, AfterValidator(a_plain_name)] | None = None
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


def issues_as_written(document: Any, found: Sequence[tuple[list[str | int], str]]) -> list[SpecIssue]:
    """Faults that were found later in a spec that could be read, told where ``document`` has what is wrong.

    ``found``: the keys and indexes that lead there from the spec's three parts on, and the message.
    """
    flat = "spec" not in document
    older = without_parser(_nested(document) if flat else document)
    issues = [issue_at(["spec", *place], message) for place, message in found]
    told = issues if older is None else [older.as_written(i) for i in issues]
    return [_flattened(i) for i in told] if flat else told


_PARTS = ("dataSchema", "ioConfig", "tuningConfig")
Submitted = TypeVar("Submitted", bound=_Submitted)


def _parse(model: type[Submitted], document: Any) -> Submitted:
    if not isinstance(document, dict):
        raise SpecError([issue_at([], "must be a JSON object")])
    flat = "spec" not in document
    nested = _nested(document) if flat else document
    older = without_parser(nested)
    issues = [] if older is None else older.issues
    today = nested if older is None else older.document
    try:
        parsed = model.model_validate(today)
    except ValidationError as error:
        found = issues_of(error, today)
        issues = [*issues, *(found if older is None else map(older.as_written, found))]
    if issues:
        raise SpecError([_flattened(i) for i in issues] if flat else issues)
    return parsed


def _nested(document: dict[str, Any]) -> dict[str, Any]:
    outer = {k: v for k, v in document.items() if k not in _PARTS}
    return {**outer, "spec": {k: document[k] for k in _PARTS if k in document}}


def _flattened(issue: SpecIssue) -> SpecIssue:
    return SpecIssue(issue.path.removeprefix("spec."), issue.pointer.removeprefix("/spec"), issue.message)


def _property_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
