"""The spec of a batch task (``index_parallel``, ``index``), with Druid's JSON names.

Source: Druid's reference of native batch ingestion. Messages name Druid's options that Headgate refuses.
``WITHOUT_EFFECT`` lists options that have no effect; every report names those that a spec sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from ingestion.specs.base import SpecModel, check_plain_name, not_supported
from ingestion.specs.errors import SpecError
from ingestion.specs.formats.file_format import CONTAINERS, AvroFileInputFormat, FileFormat, LineFormat
from ingestion.specs.formats.input_format import JsonInputFormat
from ingestion.specs.inputs.input_source import DruidInputSource, InlineInputSource, InputSource, leaf_sources
from ingestion.specs.limits import MAX_UNREAD, duplicates, list_names
from ingestion.specs.schema.data_schema import DataSchema, schema_options_without_effect
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.schema.partitions import (
    DEFAULT_ROWS,
    DividingSpec,
    DynamicPartitionsSpec,
    HashedPartitionsSpec,
    PartitionsSpec,
    Rows,
)
from ingestion.specs.tasks.ingestion_spec import (
    BYTES_IN_MEMORY,
    AppendableIndexSpec,
    BytesInMemory,
    SegmentWriteOutMediumFactory,
    TuningConfig,
    issues_as_written,
    parse_submitted,
)

BatchType = Literal["index_parallel", "index"]
BATCH_TYPES = ("index_parallel", "index")
_ANY_NUMBER = {"ALLOW_NON_NUMERIC_NUMBERS": True}  # columns of files and segments may hold NaN
_UNDIVIDED = 2**31 - 1  # rows of a segment, where it is one whole partition


class BatchIOConfig(SpecModel):
    """The input of a batch task, and whether it replaces existing segments."""

    type: BatchType
    inputSource: InputSource
    inputFormat: FileFormat | None = None
    appendToExisting: bool = False
    dropExisting: bool = False
    firehose: Annotated[None, not_supported("is not supported: use inputSource, as in Druid 0.17 and newer")] = None

    @model_validator(mode="after")
    def _check_append_and_drop(self) -> Self:
        if self.appendToExisting and self.dropExisting:
            raise ValueError("dropExisting and appendToExisting can't both be true")
        return self

    @model_validator(mode="after")
    def _check_input_format(self) -> Self:
        if isinstance(self.inputSource, DruidInputSource):
            if self.inputFormat is not None:
                raise ValueError("inputFormat is for files: omit it with the input source druid")
        elif self.inputFormat is None:
            raise ValueError("inputFormat is required")
        texts = any(isinstance(source, InlineInputSource) for _, source in leaf_sources(self.inputSource))
        if texts and isinstance(self.inputFormat, CONTAINERS):
            raise ValueError(f"{self.inputFormat.type} is a binary file format: inline takes text only")
        return self

    @property
    def line_format(self) -> LineFormat:
        """How a line is written; rows of segments, and of files that are no lines, become lines of JSON."""
        written = self.inputFormat
        if isinstance(written, CONTAINERS):
            return JsonInputFormat(type="json", flattenSpec=written.flattenSpec, featureSpec=_ANY_NUMBER)
        return written or JsonInputFormat(type="json", featureSpec=_ANY_NUMBER)

    @property
    def has_header(self) -> bool:
        """Whether columns stand in the first line of a file."""
        written = self.line_format
        return not isinstance(written, JsonInputFormat) and bool(written.has_header)

    @property
    def reader_schema(self) -> dict[str, Any] | None:
        """Avro's, by which files are read that were written with others."""
        return self.inputFormat.avro_schema if isinstance(self.inputFormat, AvroFileInputFormat) else None


class SplitHintSpec(SpecModel):
    """The most bytes and files that one Spark task reads."""

    type: Literal["maxSize"]
    maxSplitSize: int = Field(default=1 << 30, ge=1 << 16)
    maxNumFiles: int = Field(default=1_000, ge=1)

    @field_validator("maxSplitSize", mode="before")
    @classmethod
    def _parse_size(cls, value: Any) -> Any:
        """Druid's byte sizes may have a unit."""
        if not isinstance(value, str):
            return value
        units = {"KiB": 10, "MiB": 20, "GiB": 30}
        unit = next((u for u in units if value.endswith(u)), "")
        number = value.removesuffix(unit)
        return (
            int(number) << units.get(unit, 0) if number.isascii() and number.isdigit() and len(number) < 16 else value
        )


class BatchTuningConfig(SpecModel):
    """Limits. The fields from ``maxTotalRows`` on are accepted for compatibility with Druid and have no effect."""

    type: BatchType | None = None
    partitionsSpec: PartitionsSpec | None = None
    maxRowsPerSegment: Rows = None
    maxRowsInMemory: int = Field(default=1_000_000, ge=1)
    maxBytesInMemory: BytesInMemory = BYTES_IN_MEMORY
    splitHintSpec: SplitHintSpec = SplitHintSpec(type="maxSize")
    indexSpec: IndexSpec = Field(default_factory=IndexSpec)
    indexSpecForIntermediatePersists: IndexSpec | None = None
    maxPendingPersists: int = Field(default=0, ge=0, le=100)
    forceGuaranteedRollup: bool = False
    reportParseExceptions: bool = False
    logParseExceptions: bool = False
    maxParseExceptions: int | None = Field(default=None, ge=0)
    maxNumConcurrentSubTasks: int = Field(default=1, ge=1)
    maxRetry: int = Field(default=3, ge=0, le=100)
    maxSavedParseExceptions: int | None = Field(default=None, ge=0)
    maxTotalRows: Rows = None
    maxColumnsToMerge: int | None = Field(default=None, ge=-1)
    pushTimeout: int | None = Field(default=None, ge=0)
    segmentWriteOutMediumFactory: SegmentWriteOutMediumFactory | None = None
    appendableIndexSpec: AppendableIndexSpec | None = None
    skipBytesInMemoryOverheadCheck: bool | None = None
    maxNumSegmentsToMerge: int | None = Field(default=None, ge=1)
    totalNumMergeTasks: int | None = Field(default=None, ge=1)
    taskStatusCheckPeriodMs: int | None = Field(default=None, ge=1)
    chatHandlerTimeout: timedelta | None = Field(default=None, gt=timedelta())
    chatHandlerNumRetries: int | None = Field(default=None, ge=0)
    awaitSegmentAvailabilityTimeoutMillis: int | None = Field(default=None, ge=0)
    maxAllowedLockCount: int | None = Field(default=None, ge=-1)
    numPersistThreads: int | None = Field(default=None, ge=1)
    basePersistDirectory: str | None = Field(default=None, max_length=1_000)
    buildV9Directly: bool | None = None

    @model_validator(mode="after")
    def _check_perfect_rollup(self) -> Self:
        partitions = self.partitionsSpec
        if partitions is None or isinstance(partitions, DynamicPartitionsSpec):
            if partitions is not None and self.forceGuaranteedRollup:
                raise ValueError("forceGuaranteedRollup needs a partitionsSpec of type hashed, range or single_dim")
            return self
        if not self.forceGuaranteedRollup:
            raise ValueError(f"partitionsSpec {partitions.type} needs forceGuaranteedRollup true, as in Druid")
        if self.maxRowsPerSegment is not None:
            raise ValueError(f"maxRowsPerSegment is not for partitionsSpec {partitions.type}, which has its own size")
        return self

    @property
    def dividing(self) -> DividingSpec | None:
        """By what rows go to partitions that are one segment each; None: to segments of ``rows_per_segment``."""
        if not self.forceGuaranteedRollup:
            return None
        if self.partitionsSpec is None or isinstance(self.partitionsSpec, DynamicPartitionsSpec):
            return HashedPartitionsSpec(type="hashed", targetRowsPerSegment=self.maxRowsPerSegment)
        return self.partitionsSpec

    @property
    def rows_per_segment(self) -> int:
        """At most."""
        if self.dividing is not None:
            return _UNDIVIDED
        dynamic = self.partitionsSpec if isinstance(self.partitionsSpec, DynamicPartitionsSpec) else None
        partition_rows = dynamic.maxRowsPerSegment if dynamic else None
        most_rows = partition_rows if partition_rows is not None and partition_rows > 0 else self.maxRowsPerSegment
        return most_rows or DEFAULT_ROWS

    @property
    def parse_exceptions_limit(self) -> int | None:
        """After how many the task fails; None: never. ``reportParseExceptions`` overrides, as in Druid."""
        return 0 if self.reportParseExceptions else self.maxParseExceptions

    @property
    def saved_parse_exceptions(self) -> int:
        """How many the report shows at most."""
        most_saved = MAX_UNREAD if self.maxSavedParseExceptions is None else self.maxSavedParseExceptions
        return min(most_saved, 1 if self.reportParseExceptions else MAX_UNREAD)

    @property
    def decoding_bytes(self) -> int:
        """What the decoder may need."""
        return self.maxBytesInMemory * 4

    @property
    def gathering(self) -> TuningConfig:
        """How rows gather to segments, as a stream's do, in the memory that the decoder had: all is decoded by then."""
        return TuningConfig(
            maxRowsPerSegment=self.rows_per_segment,
            maxRowsInMemory=self.maxRowsInMemory,
            maxBytesInMemory=self.decoding_bytes,
            intermediatePersistPeriod=timedelta(days=365),
            maxPendingPersists=self.maxPendingPersists,
            indexSpec=self.indexSpec,
            indexSpecForIntermediatePersists=self.indexSpecForIntermediatePersists,
        )


class BatchSpec(SpecModel):
    """The three parts of a batch task's spec."""

    dataSchema: DataSchema
    ioConfig: BatchIOConfig
    tuningConfig: BatchTuningConfig = Field(default_factory=BatchTuningConfig)

    @property
    def reindexes(self) -> bool:
        """Whether it reads segments of the datasource that it writes to, and takes their place."""
        source = self.ioConfig.inputSource
        is_own_datasource = isinstance(source, DruidInputSource) and source.dataSource == self.dataSchema.dataSource
        return is_own_datasource and not self.ioConfig.appendToExisting

    @property
    def reads_as(self) -> str:
        """Equal in specs that differ alone in where they read."""
        return self.model_dump_json(exclude={"ioConfig": {"inputSource"}})

    @property
    def for_kept_records(self) -> BatchSpec:
        """By which records are read again from the quarantine: rows are appended, and no bad record ends it."""
        io_config = self.ioConfig.model_copy(update={"appendToExisting": True, "dropExisting": False})
        unlimited: dict[str, Any] = {"reportParseExceptions": False, "maxParseExceptions": None}
        if self.tuningConfig.dividing is not None:
            unlimited |= {"partitionsSpec": None, "forceGuaranteedRollup": False}
        tuning = self.tuningConfig.model_copy(update=unlimited)
        return self.model_copy(update={"ioConfig": io_config, "tuningConfig": tuning})

    @model_validator(mode="after")
    def _check_time(self) -> Self:
        timestamp_spec = self.dataSchema.timestampSpec
        wrong = timestamp_spec.column != "__time" or timestamp_spec.format not in ("auto", "millis")
        if isinstance(self.ioConfig.inputSource, DruidInputSource) and wrong:
            raise ValueError('with the input source druid timestampSpec is {"column": "__time", "format": "millis"}')
        if self.reindexes and self.ioConfig.dropExisting:
            raise ValueError("a task that re-indexes its own datasource replaces all rows: omit dropExisting")
        return self

    @model_validator(mode="after")
    def _partitions(self) -> Self:
        dividing, schema = self.tuningConfig.dividing, self.dataSchema
        if dividing is None:
            return self
        if self.ioConfig.appendToExisting:
            raise ValueError("forceGuaranteedRollup and appendToExisting exclude each other: existing segments stay")
        if self.ioConfig.type == "index" and not isinstance(dividing, HashedPartitionsSpec):
            raise ValueError(f"partitionsSpec {dividing.type} is for index_parallel, as in Druid")
        metrics, named = {m.name for m in schema.metricsSpec}, {d.name for d in schema.dimensionsSpec.dimensions}
        for name in dividing.dimensions:
            if name == "__time" or name in metrics or not (schema.dimensionsSpec.discovers or name in named):
                raise ValueError(f"partitionsSpec names {name!r}, which is not a dimension")
        twice = duplicates(dividing.dimensions)
        if twice:
            raise ValueError(f"partitionsSpec names dimensions twice: {list_names(twice)}")
        return self

    @model_validator(mode="after")
    def _intervals(self) -> Self:
        granularity_spec = self.dataSchema.granularitySpec
        for text in granularity_spec.intervals or []:
            interval_ms(text)
        if self.ioConfig.dropExisting and not granularity_spec.intervals:
            raise ValueError("dropExisting needs dataSchema.granularitySpec.intervals: the intervals to drop")
        if granularity_spec.segmentGranularity is Granularity.ALL and not self.ioConfig.appendToExisting:
            raise ValueError("segmentGranularity ALL needs appendToExisting: otherwise it would replace all segments")
        return self


class BatchTaskSpec(SpecModel):
    """A batch task."""

    type: BatchType
    id: Annotated[str, AfterValidator(check_plain_name)] | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    spec: BatchSpec

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        if self.spec.ioConfig.type != self.type:
            raise ValueError(f"type is {self.type!r}, but ioConfig.type is {self.spec.ioConfig.type!r}")
        tuning = self.spec.tuningConfig.type
        if tuning is not None and tuning != self.type:
            raise ValueError(f"type is {self.type!r}, but tuningConfig.type is {tuning!r}")
        return self

    @property
    def datasource(self) -> str:
        return self.spec.dataSchema.dataSource

    @property
    def max_slots(self) -> int:
        """How many of Spark's slots it has use for."""
        return self.spec.tuningConfig.maxNumConcurrentSubTasks if self.type == "index_parallel" else 1

    def canonical(self) -> dict[str, Any]:
        """The JSON that is stored: nested form, without what is null."""
        return self.model_dump(mode="json", exclude_defaults=False, exclude_none=True)


def is_batch(document: Any) -> bool:
    """Whether a document, as it is written, is a batch task's."""
    return isinstance(document, Mapping) and document.get("type") in BATCH_TYPES


def parse_batch_spec(document: Any) -> BatchTaskSpec:
    """Read a batch task's JSON, flat or nested under ``spec``. Raises ``SpecError``."""
    return parse_submitted(BatchTaskSpec, document, _with_type)


def parse_changed_batch_spec(document: Any, before: BatchTaskSpec) -> BatchTaskSpec:
    """Read a batch task's JSON, for records that are in quarantine already. Raises ``SpecError``."""
    spec = parse_batch_spec(document)
    if spec.spec.ioConfig.inputSource != before.spec.ioConfig.inputSource:
        fault = "the replay reads the records from the quarantine: leave inputSource unchanged"
        raise SpecError(issues_as_written(document, [(["ioConfig", "inputSource"], fault)]))
    return spec


def _with_type(nested: dict[str, Any]) -> dict[str, Any]:
    """With the type in ioConfig too, which may leave it out."""
    spec = nested.get("spec")
    io_config = spec.get("ioConfig") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(io_config, dict) or io_config.get("type") is not None:
        return nested
    return {**nested, "spec": {**spec, "ioConfig": {**io_config, "type": nested.get("type")}}}


_ONE_PUBLISH = "the task publishes everything at once, at its end"
_SPARK = "Spark schedules and watches the parts of the task"
_OWN_FILES = "Headgate collects rows in files of its own"
WITHOUT_EFFECT = {
    "maxTotalRows": _ONE_PUBLISH,
    "maxColumnsToMerge": _OWN_FILES,
    "pushTimeout": "failed writes to deep storage are retried as maxRetry says",
    "segmentWriteOutMediumFactory": _OWN_FILES,
    "appendableIndexSpec": _OWN_FILES,
    "skipBytesInMemoryOverheadCheck": _OWN_FILES,
    "maxNumSegmentsToMerge": _SPARK,
    "totalNumMergeTasks": _SPARK,
    "taskStatusCheckPeriodMs": _SPARK,
    "chatHandlerTimeout": _SPARK,
    "chatHandlerNumRetries": _SPARK,
    "awaitSegmentAvailabilityTimeoutMillis": "segments are readable as soon as the task has ended",
    "maxAllowedLockCount": "no locks are taken before the publish",
    "numPersistThreads": _OWN_FILES,
    "basePersistDirectory": "a setting of the site names the folder",
    "buildV9Directly": "segments are Parquet files",
}


def options_without_effect(stored: Mapping[str, Any]) -> list[str]:
    """What a stored spec sets that does not do here what it says in Druid, by path and with the reason."""
    spec = stored.get("spec", {})
    tuning, schema = spec.get("tuningConfig", {}), spec.get("dataSchema", {})
    options = [f"tuningConfig.{name}: {why}" for name, why in WITHOUT_EFFECT.items() if tuning.get(name) is not None]
    for name, why in {"maxTotalRows": _ONE_PUBLISH, "partitionFunction": "queries do not use the hash"}.items():
        if (tuning.get("partitionsSpec") or {}).get(name) is not None:
            options.append(f"tuningConfig.partitionsSpec.{name}: {why}")
    for name in ("indexSpec", "indexSpecForIntermediatePersists"):
        unread = IndexSpec.model_validate(tuning.get(name) or {}).without_effect()
        options += [f"tuningConfig.{name}.{option}: {why}" for option, why in unread.items()]
    options += schema_options_without_effect(schema)
    if spec.get("ioConfig", {}).get("inputFormat", {}).get("keepNullColumns"):
        options.append("ioConfig.inputFormat.keepNullColumns: a column without any value is not stored")
    if stored.get("context"):
        options.append("context: Headgate does not read it")
    return options
