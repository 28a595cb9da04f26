"""What a stored dataSchema sets that does nothing here, whichever kind of task has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ingestion.specs.cast_types import cast_type


def schema_options_without_effect(schema: Mapping[str, Any]) -> list[str]:
    """By path and with the reason."""
    options = ["dataSchema.projections: queries read the rows"] if schema.get("projections") else []
    for dimension in schema.get("dimensionsSpec", {}).get("dimensions", []):
        if isinstance(dimension, dict):
            path = f"dataSchema.dimensionsSpec.dimensions[{dimension.get('name')}]"
            options += [f"{path}.{option}" for option in _of_dimension(dimension)]
    return options


def _of_dimension(dimension: Mapping[str, Any]) -> Iterator[str]:
    if not dimension.get("createBitmapIndex", True):
        yield "createBitmapIndex: Parquet has no bitmap index"
    if dimension.get("formatVersion") is not None:
        yield "formatVersion: Parquet has one form of nested columns"
    wanted = dimension.get("castToType")
    if wanted is not None and cast_type(wanted) is None:
        yield f"castToType: as in Druid, nothing is cast to {wanted!r}"
