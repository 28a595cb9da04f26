"""Which of a record's fields a spec names, and what reads each."""

from __future__ import annotations

from collections.abc import Iterator

from ingestion.decode.counted_records import CountedRecords
from ingestion.decode.engine import Engine
from ingestion.decode.metric_expressions import MetricExpressions
from ingestion.decode.transforms import Transforms
from ingestion.rows import TIME
from ingestion.specs.formats.flatten_spec import FlattenField
from ingestion.specs.formats.input_format import InputFormat, KafkaInputFormat
from ingestion.specs.schema.data_schema import DataSchema


def named_fields(engine: Engine, schema: DataSchema, input_format: InputFormat, *, timed: bool) -> dict[str, list[str]]:
    """By field, what names it: ``dimension``, ``filter``, ``transform 'x'``, ``metric 'x'``, or a part of the spec.

    Without what transforms make. ``timed``: whether the ``timestampSpec`` is meant. Raises ``BadExpression``.
    """
    transforms = Transforms(engine, schema.transformSpec)
    uses_by_any = [*transforms.filter_reads, *CountedRecords(engine, schema).reads, *_schema_fields(engine, schema)]
    if timed and TIME not in transforms.names:
        uses_by_any.append((schema.timestampSpec.column, "timestampSpec"))
    record_uses = [*transforms.reads, *(read for read in uses_by_any if read[0] not in transforms.names)]
    record_uses += [(field.name, "flattenSpec") for field in flattened_by(input_format)]
    if schema.dimensionsSpec.discovers:
        record_uses += [(name, "dimensionExclusions") for name in schema.dimensionsSpec.dimensionExclusions]
    readers: dict[str, list[str]] = {}
    for name, reader in dict.fromkeys(record_uses):
        if name != TIME:
            readers.setdefault(name, []).append(reader)
    return readers


def undiscovered_fields(engine: Engine, schema: DataSchema, input_format: InputFormat) -> frozenset[str]:
    """Fields of the records that are read because the spec names them, where a flattenSpec discovers no others.

    Raises ``BadExpression``.
    """
    inner = input_format.valueFormat if isinstance(input_format, KafkaInputFormat) else input_format
    flatten = getattr(inner, "flattenSpec", None)
    if flatten is None or flatten.useFieldDiscovery or not schema.dimensionsSpec.discovers:
        return frozenset()
    named = named_fields(engine, schema, inner, timed=True).keys() - {field.name for field in flatten.fields}
    if not isinstance(input_format, KafkaInputFormat):
        return frozenset(named)
    kafka_columns = (input_format.timestampColumnName, input_format.topicColumnName, input_format.keyColumnName)
    return frozenset(n for n in named if n not in kafka_columns and not n.startswith(input_format.headerColumnPrefix))


def flattened_by(input_format: InputFormat) -> list[FlattenField]:
    """The fields that a format makes of nested values."""
    inner = input_format.valueFormat if isinstance(input_format, KafkaInputFormat) else input_format
    spec = getattr(inner, "flattenSpec", None)
    return [] if spec is None else list(spec.fields)


def _schema_fields(engine: Engine, schema: DataSchema) -> Iterator[tuple[str, str]]:
    yield from MetricExpressions(engine, schema.metricsSpec).reads
    for metric in schema.metricsSpec:
        if metric.field is not None and metric.made_from is None:
            yield metric.field, f"metric {metric.name!r}"
    for dimension in schema.dimensionsSpec.dimensions:
        yield dimension.name, "dimension"
