"""The rows of a segment as records: lines of JSON, with ``__time`` in milliseconds, as the decoder reads them."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.batch.errors import InputRefused
from ingestion.batch.lines import Line
from ingestion.decode.exact_numbers import single_number, stored_json
from ingestion.decode.formats.base import json_encoder
from ingestion.rows import JSON_TYPE, TIME
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.errors import DamagedSegment, storage_error
from ingestion.segments.reader import open_verified
from ingestion.segments.table_shape import Shape
from ingestion.sketches.types import SketchType
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.schema.data_schema import EXTENTS, DataSchema
from ingestion.specs.schema.metrics import fields_of, unfiltered_metric
from ingestion.specs.schema.sketch_metrics import SketchMetric

_ROWS = 8_192


def read_segment_rows(
    segment: InputSegment, storage: DeepStorage, interval: tuple[int, int], schema: DataSchema
) -> Iterator[Line]:
    """Those with a time in the interval, in milliseconds. Raises ``DamagedSegment``, ``DeepStorageError``, and
    ``InputRefused`` if the schema reads a sketch as if it were a value.
    """
    number, encode = 0, json_encoder()
    try:
        with open_verified(storage, segment) as opened:
            file = pq.ParquetFile(opened)
            _check_sketches(file.schema_arrow, schema)
            needed = Shape.of(schema).has_extents
            for batch in file.iter_batches(_ROWS, use_threads=False):
                for row, extents in zip(_visible_rows(batch), _extents(batch, needed), strict=True):
                    if interval[0] <= row[TIME] < interval[1]:
                        yield Line(f"{segment.path}, row", number, encode(row).encode(), extents)
                    number += 1
    except pa.ArrowException as error:
        raise DamagedSegment(f"{segment.path} can't be read as Parquet: {error}") from error
    except OSError as error:
        raise storage_error(f"read {segment.path}", error) from error


def _check_sketches(columns: pa.Schema, schema: DataSchema) -> None:
    metrics = [unfiltered_metric(m) for m in schema.metricsSpec]
    merged = {m.field for m in metrics if isinstance(m, SketchMetric) and m.reads_sketches}
    dimensions = schema.dimensionsSpec
    read = fields_of(schema.metricsSpec) | {d.name for d in dimensions.dimensions}
    for column in columns:
        if not isinstance(column.type, SketchType) or column.name in merged:
            continue
        if column.name in read or (dimensions.discovers and column.name not in schema.undiscovered):
            raise InputRefused(
                f"Column {column.name!r} has sketches ({column.type.kind}): merge them by a metric HLLSketchMerge, "
                "quantilesDoublesSketch, or thetaSketch with isInputThetaSketch, or leave the column out "
                "(dimensionExclusions)."
            )


def _extents(batch: pa.RecordBatch, needed: bool) -> Iterable[tuple[int, ...] | None]:
    """Of each row; None where the segment has none."""
    if not needed or EXTENTS[0] not in batch.schema.names:
        return itertools.repeat(None, len(batch))
    return zip(*(batch.column(name).to_pylist() for name in EXTENTS), strict=True)


def _visible_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Without what is hidden; what is null is left out."""
    batch = batch.select([name for name in batch.schema.names if name not in EXTENTS])
    columns: list[list[Any]] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name == TIME:
            columns.append(column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist())
        elif field.type == JSON_TYPE:
            columns.append([None if v is None else stored_json(v) for v in column.storage.to_pylist()])
        elif isinstance(field.type, SketchType):
            columns.append([None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()])
        elif pa.types.is_float32(field.type):
            columns.append([None if v is None else single_number(v) for v in column.to_pylist()])
        else:
            columns.append([v.isoformat() if isinstance(v, datetime) else v for v in column.to_pylist()])
    names = batch.schema.names
    for values in zip(*columns, strict=True):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}
