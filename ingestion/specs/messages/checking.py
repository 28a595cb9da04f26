"""What of a spec only the data plane can check, and the messages between who asks and the process that does.

The control plane sends a ``CheckOrder`` and gets a ``CheckAnswer``: JSON, one in a line.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ingestion.specs.base import Message
from ingestion.specs.formats.input_format import (
    AvroFileDecoder,
    AvroInputFormat,
    InputFormat,
    KafkaInputFormat,
    ProtobufFileDecoder,
    ProtobufInputFormat,
    RegexInputFormat,
    ThriftInputFormat,
)
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.filters import (
    AndFilter,
    ExpressionFilter,
    Filter,
    IsFalseFilter,
    IsTrueFilter,
    NotFilter,
    OrFilter,
    RegexFilter,
    SearchFilter,
)
from ingestion.specs.schema.metrics import FilteredMetric, Metric
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.specs.tasks.ingestion_spec import IngestionSpec

Place = tuple[str | int, ...]
# Formats whose reader may refuse what they say.
_TRIED_FORMATS = (AvroInputFormat, ProtobufInputFormat, ThriftInputFormat, RegexInputFormat)


class CheckOrder(Message):
    """The parts of a spec that are checked; none of them holds a secret."""

    data_schema: DataSchema
    input_format: InputFormat
    reader_schema: dict[str, Any] | None = None  # Avro's, of files
    topic_pattern: str | None = None
    schema_folder: str
    reads_files: bool  # whether the folder for schemas is on this machine; else formats that name files are left out


class CheckIssue(Message):
    """One fault of a spec, found by trying it out."""

    place: list[str | int]  # the keys and indexes that lead to what is wrong, from the three parts of a spec on
    message: str


class CheckAnswer(Message):
    issues: list[CheckIssue] = Field(default_factory=list)


def format_of(spec: IngestionSpec | BatchSpec) -> InputFormat:
    """How its records are written."""
    return spec.ioConfig.line_format if isinstance(spec, BatchSpec) else spec.ioConfig.inputFormat


def pattern_of(spec: IngestionSpec | BatchSpec) -> str | None:
    """Which topics it reads, if it says so by a pattern."""
    return None if isinstance(spec, BatchSpec) else spec.ioConfig.topicPattern


def reader_schema_of(spec: IngestionSpec | BatchSpec) -> dict[str, Any] | None:
    """The schema by which files of Avro are read."""
    return spec.ioConfig.reader_schema if isinstance(spec, BatchSpec) else None


def needs_check(spec: IngestionSpec | BatchSpec) -> bool:
    """Whether there is something in it that takes more than these models to understand."""
    schema = spec.dataSchema
    return bool(
        schema.transformSpec.transforms
        or any(m.made_from is not None for m in schema.metricsSpec)
        or expressions_of(schema.transformSpec.filter)
        or patterns_of(schema)
        or any(isinstance(f, _TRIED_FORMATS) for f, _ in formats_of(format_of(spec)))
        or reader_schema_of(spec)
        or pattern_of(spec)
        or "%" in schema.timestampSpec.format
    )


def expressions_of(condition: Filter | None, place: Place = ()) -> list[tuple[ExpressionFilter, Place]]:
    """The conditions in a filter that are expressions, and where these stand in it."""
    leaves = _leaves(condition, place)
    return [(leaf, (*leaf_place, "expression")) for leaf, leaf_place in leaves if isinstance(leaf, ExpressionFilter)]


def patterns_of(schema: DataSchema) -> list[tuple[str, Place]]:
    """The regular expressions of all filters, including those of metrics, each with its place."""
    patterns: list[tuple[str, Place]] = []
    filters: list[tuple[Filter | None, Place]] = [(schema.transformSpec.filter, ("transformSpec", "filter"))]
    for number, metric in enumerate(schema.metricsSpec):
        filters += _filters_of(metric, ("metricsSpec", number))
    for condition, place in filters:
        for leaf, leaf_place in _leaves(condition, place):
            if isinstance(leaf, RegexFilter):
                patterns.append((leaf.pattern, (*leaf_place, "pattern")))
            elif isinstance(leaf, SearchFilter) and leaf.query.pattern is not None:
                patterns.append((leaf.query.pattern, (*leaf_place, "query", "pattern")))
    return patterns


def _filters_of(metric: Metric, place: Place) -> list[tuple[Filter | None, Place]]:
    if not isinstance(metric, FilteredMetric):
        return []
    return [(metric.filter, (*place, "filter")), *_filters_of(metric.aggregator, (*place, "aggregator"))]


def _leaves(condition: Filter | None, place: Place) -> list[tuple[Filter, Place]]:
    """The filters that have none in them, and where they stand."""
    if condition is None:
        return []
    if isinstance(condition, NotFilter | IsTrueFilter | IsFalseFilter):
        return _leaves(condition.field, (*place, "field"))
    if isinstance(condition, AndFilter | OrFilter):
        return [e for i, inner in enumerate(condition.fields) for e in _leaves(inner, (*place, "fields", i))]
    return [(condition, place)]


def formats_of(written: InputFormat) -> list[tuple[InputFormat, Place]]:
    """An input format, or those within it."""
    if not isinstance(written, KafkaInputFormat):
        return [(written, ())]
    key = [] if written.keyFormat is None else [(written.keyFormat, ("keyFormat",))]
    return [(written.valueFormat, ("valueFormat",)), *key]


def has_schema_file(written: InputFormat) -> bool:
    """Whether its schema is in a file of the folder for schemas."""
    if isinstance(written, AvroInputFormat):
        return isinstance(written.avroBytesDecoder, AvroFileDecoder)
    if isinstance(written, ProtobufInputFormat):
        return isinstance(written.protoBytesDecoder, ProtobufFileDecoder)
    return isinstance(written, ThriftInputFormat) and written.thriftFile is not None
