"""A datasource's columns in Spark's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ingestion.specs.metric_base import SketchKind

_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "json": StringType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
    "strings": ArrayType(StringType()),
    **dict.fromkeys(get_args(SketchKind), BinaryType()),
}


def struct_of(columns: Iterable[Mapping[str, Any]]) -> StructType:
    """``columns``: with ``name`` and ``type``, as REST tells them."""
    return StructType([StructField(c["name"], _TYPES.get(c["type"], StringType())) for c in columns])
