"""Which of a record's own fields a schema names, and what reads each."""

from __future__ import annotations

from collections.abc import Iterator

from ingestion.decode.counted_records import CountedRecords
from ingestion.decode.engine import Engine
from ingestion.decode.metric_expressions import MetricExpressions
from ingestion.decode.transforms import Transforms
from ingestion.rows import TIME
from ingestion.specs import DataSchema


def named_fields(engine: Engine, schema: DataSchema) -> dict[str, list[str]]:
    """By field, what reads it: ``dimension``, ``filter``, ``transform 'x'``, ``metric 'x'``.

    Without the time's, and without what transforms make. Raises ``BadExpression``.
    """
    transforms = Transforms(engine, schema.transformSpec)
    of_either = [*transforms.filter_reads, *CountedRecords(engine, schema).reads, *_of_schema(engine, schema)]
    of_records = [*transforms.reads, *(read for read in of_either if read[0] not in transforms.names)]
    found: dict[str, list[str]] = {}
    for name, reader in dict.fromkeys(of_records):
        if name != TIME:
            found.setdefault(name, []).append(reader)
    return found


def _of_schema(engine: Engine, schema: DataSchema) -> Iterator[tuple[str, str]]:
    yield from MetricExpressions(engine, schema.metricsSpec).reads
    for metric in schema.metricsSpec:
        if metric.field is not None and metric.made_from is None:
            yield metric.field, f"metric {metric.name!r}"
    for dimension in schema.dimensionsSpec.dimensions:
        yield dimension.name, "dimension"
