"""The process that checks a spec as an indexer would at its start: ``python -m ingestion.task.check_spec``.

Spoken to through standard input and output (``ingestion.specs.messages.checking``). It opens no connection, and
reads no file but those of the folder for schemas. What takes too much of the machine to check ends it; who asks waits
only so long.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from typing import TextIO

from ingestion.decode.druid_patterns import pattern
from ingestion.decode.engine import Engine
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.expression_runner import ExpressionRunner
from ingestion.decode.expressions import BadExpression
from ingestion.decode.formats import JSON, ReaderTools, create_reader
from ingestion.decode.formats.access import Access
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.messages.checking import (
    CheckAnswer,
    CheckIssue,
    CheckOrder,
    Place,
    expressions_of,
    formats_of,
    has_schema_file,
    patterns_of,
)
from ingestion.specs.schema.data_schema import DataSchema, ExpressionTransform, TransformSpec
from ingestion.specs.schema.filters import ExpressionFilter
from ingestion.specs.schema.java_classes import BadPattern
from ingestion.specs.schema.metrics import FilteredMetric, Metric
from ingestion.task.schema_registry import ConfluentRegistry
from ingestion.without_pandas import keep_pandas_out

_MEMORY_BYTES = 256 * 1024 * 1024  # of DuckDB
_ADDRESS_SPACE_BYTES = 8 * 1024 * 1024 * 1024
_PROCESSOR_S = 20
_TRANSFORMS: Place = ("dataSchema", "transformSpec")
_FORMAT: Place = ("ioConfig", "inputFormat")
# Where in a format that has a schema, or a pattern, it is.
_SCHEMAS = {
    "avro_stream": "avroBytesDecoder",
    "protobuf": "protoBytesDecoder",
    "thrift": "thriftClass",
    "regex": "pattern",
}


def find_issues(order: CheckOrder) -> list[CheckIssue]:
    """Everything that is wrong; what can only be told of the whole is told when no part is to blame."""
    schema, access = order.data_schema, Access(ConfluentRegistry, order.schema_folder)
    engine = Engine(_MEMORY_BYTES)
    try:
        parts = [
            *expression_faults(engine, schema.transformSpec),
            *_metric_faults(engine, schema),
            *_pattern_faults(schema),
            *_format_faults(engine, order, access),
            *_time_faults(schema),
            *_topic_pattern_faults(order.topic_pattern),
        ]
    finally:
        engine.close()
    return parts or list(_whole_spec_faults(order, access))


def expression_faults(engine: Engine, spec: TransformSpec) -> Iterator[CheckIssue]:
    """Those of transforms and filter, each at its own place."""
    expressions: list[tuple[ExpressionTransform | ExpressionFilter, Place]] = [
        (t, ("transforms", i, "expression")) for i, t in enumerate(spec.transforms)
    ]
    for written, place in [*expressions, *expressions_of(spec.filter, ("filter",))]:
        try:
            ExpressionRunner(engine, written.expression, written.language, isinstance(written, ExpressionFilter))
        except BadExpression as error:
            yield CheckIssue(place=[*_TRANSFORMS, *place], message=str(error))


def _metric_faults(engine: Engine, schema: DataSchema) -> Iterator[CheckIssue]:
    for number, metric in enumerate(schema.metricsSpec):
        if metric.made_from is None:
            continue
        try:
            ExpressionRunner(engine, metric.made_from, "druid")
        except BadExpression as error:
            inside = _aggregator_path(metric)
            place: Place = ("dataSchema", "metricsSpec", number, *inside, "expression")
            yield CheckIssue(place=[*place], message=str(error))


def _pattern_faults(schema: DataSchema) -> Iterator[CheckIssue]:
    for written, place in patterns_of(schema):
        try:
            pattern(written)
        except BadPattern as error:
            yield CheckIssue(place=["dataSchema", *place], message=str(error))


def _aggregator_path(metric: Metric) -> Place:
    """Where in a filtered one the metric is that reads the expression."""
    return ("aggregator", *_aggregator_path(metric.aggregator)) if isinstance(metric, FilteredMetric) else ()


def _format_faults(engine: Engine, order: CheckOrder, access: Access) -> Iterator[CheckIssue]:
    tools = ReaderTools.of(engine, order.data_schema, access)
    for written, place in formats_of(order.input_format):
        if order.reads_files or not has_schema_file(written):
            try:
                create_reader(written, tools)
            except UnusableSchema as error:
                suffix = [_SCHEMAS[written.type]] if written.type in _SCHEMAS else []
                yield CheckIssue(place=[*_FORMAT, *place, *suffix], message=str(error))
    if order.reader_schema is not None:
        from ingestion.decode.formats.avro import checked_schema  # not at the top: fastavro takes long

        try:
            checked_schema(order.reader_schema, of_reader=True)
        except UnusableSchema as error:
            yield CheckIssue(place=[*_FORMAT, "schema"], message=str(error))


def _topic_pattern_faults(written: str | None) -> Iterator[CheckIssue]:
    try:
        if written is not None:
            pattern(written)
    except BadPattern as error:
        yield CheckIssue(place=["ioConfig", "topicPattern"], message=str(error))


def _time_faults(schema: DataSchema) -> Iterator[CheckIssue]:
    alone = DataSchema(dataSource=schema.dataSource, timestampSpec=schema.timestampSpec)
    for error in _schema_faults(alone, JSON, Access()):
        yield CheckIssue(place=["dataSchema", "timestampSpec", "format"], message=error)


def _whole_spec_faults(order: CheckOrder, access: Access) -> Iterator[CheckIssue]:
    written = order.input_format
    if not order.reads_files and any(has_schema_file(f) for f, _ in formats_of(written)):
        written = JSON
    for error in _schema_faults(order.data_schema, written, access):
        yield CheckIssue(place=["dataSchema"], message=error)


def _schema_faults(schema: DataSchema, written: InputFormat, access: Access) -> Iterator[str]:
    try:
        JsonDecoder(schema, _MEMORY_BYTES, input_format=written, access=access).close()
    except UnusableSchema as error:
        yield str(error)


def main(orders: TextIO, answers: TextIO) -> int:
    """Exit code 0 when it could be checked, whatever came of it."""
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    order = CheckOrder.model_validate_json(orders.readline())
    print(CheckAnswer(issues=find_issues(order)).model_dump_json(), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    keep_pandas_out()
    sys.exit(main(sys.stdin, sys.stdout))
