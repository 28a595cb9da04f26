"""How an ``indexSpec`` is said in Parquet: a codec for each column, and which columns have a dictionary.

As in Druid, ``metricCompression`` is also that of the time column, and lists are dimensions. Times, and whole numbers
that hardly repeat, are written as differences. Times have microseconds there, as Iceberg does; rows have milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.rows import JSON_TYPE, TIME, TIME_TYPE
from ingestion.sketches.types import SketchType
from ingestion.specs.schema.index_spec import Compression, IndexSpec

_ZSTD_LEVEL = 1  # higher levels took longer and saved nothing on small segments
_SAMPLE = 4096
_MOSTLY_DISTINCT = 0.75  # of a sample's values are different ones
# "lz4" is what Parquet calls LZ4_RAW: the other LZ4 of Parquet is deprecated.
_CODECS: dict[Compression | None, str] = {
    None: "zstd",
    "auto": "zstd",
    "zstd": "zstd",
    "lz4": "lz4",
    "lzf": "lz4",
    "uncompressed": "none",
    "none": "none",
}


def parquet_options(
    spec: IndexSpec, schema: pa.Schema, metrics: Collection[str] = (), without_dictionary: Collection[str] = ()
) -> dict[str, Any]:
    """The arguments for ``pyarrow.parquet.ParquetWriter``. ``metrics``: which columns are not dimensions."""
    codecs = {_leaf_path(field): _codec(spec, field, metrics) for field in schema}
    levels = {leaf: _ZSTD_LEVEL for leaf, codec in codecs.items() if codec == "zstd"}
    eight_bytes = [f for f in schema if f.type == pa.int64()] if spec.longEncoding == "longs" else []
    no_dictionary = [
        f for f in schema if f.name == TIME or f.name in without_dictionary or f in eight_bytes or _is_sketch(f)
    ]
    differences = [_leaf_path(f) for f in no_dictionary if _has_integers(f.type) and f not in eight_bytes]
    return {
        "compression": codecs,
        "compression_level": levels or None,
        "use_dictionary": sorted(codecs.keys() - map(_leaf_path, no_dictionary)),
        "column_encoding": dict.fromkeys(differences, "DELTA_BINARY_PACKED") or None,
        "coerce_timestamps": "us",
    }


def mostly_distinct(table: pa.Table) -> list[str]:
    """The columns in which a dictionary would save nothing, by a sample of their values. Lists always have one."""
    if len(table) < _SAMPLE:
        return []
    sample = table.take(pa.array(np.arange(0, len(table), len(table) // _SAMPLE)))
    return [f.name for f, column in zip(sample.schema, sample.columns, strict=True) if _is_mostly_distinct(f, column)]


def _is_mostly_distinct(field: pa.Field, column: pa.ChunkedArray) -> bool:
    if field.type not in (pa.string(), pa.int64(), pa.float64()):
        return False
    return int(pc.count_distinct(column).as_py()) > _MOSTLY_DISTINCT * len(column)


def _has_integers(kind: pa.DataType) -> bool:
    return kind in (pa.int64(), TIME_TYPE, pa.list_(pa.int64()))


def _is_sketch(field: pa.Field) -> bool:
    return isinstance(field.type, SketchType)


def _codec(spec: IndexSpec, field: pa.Field, metrics: Collection[str]) -> str:
    if field.type == JSON_TYPE:
        return _CODECS[spec.jsonCompression]
    if field.name == TIME or field.name in metrics:
        return _CODECS[spec.metricCompression]
    return _CODECS[spec.dimensionCompression]


def _leaf_path(field: pa.Field) -> str:
    """What Parquet calls the column that holds the values."""
    return f"{field.name}.list.element" if isinstance(field.type, pa.ListType) else str(field.name)
