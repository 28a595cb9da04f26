"""A datasource's columns in Spark's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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

_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "json": StringType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
    "strings": ArrayType(StringType()),
}


def struct_of(columns: Iterable[Mapping[str, Any]]) -> StructType:
    """``columns``: with ``name`` and ``type``, as REST tells them."""
    return StructType([StructField(c["name"], _type_of(c["type"])) for c in columns])


def _type_of(name: str) -> DataType:
    """Sketches, whose types Druid calls ``COMPLEX<HLLSketch>`` and so on, are bytes."""
    return BinaryType() if name.startswith("COMPLEX<") else _TYPES.get(name, StringType())
