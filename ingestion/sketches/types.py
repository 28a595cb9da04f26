"""Columns of sketches: bytes, with the kind of sketch as their Arrow type, which Parquet files keep."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa

from ingestion.specs.schema.metric_base import SketchKind


class SketchType(pa.ExtensionType):  # type: ignore[misc]
    """``kind``: as a segment's columns tell it."""

    def __init__(self, kind: SketchKind) -> None:
        self.kind = kind
        super().__init__(pa.binary(), f"headgate.{kind}")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> SketchType:
        raise NotImplementedError


def _type_of(kind: SketchKind) -> SketchType:
    """Arrow finds a type again by its class."""

    class Known(SketchType):
        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> SketchType:
            return cls(kind)

    extension_type = Known(kind)
    pa.register_extension_type(extension_type)
    return extension_type


SKETCH_TYPES: dict[str, SketchType] = {kind: _type_of(kind) for kind in get_args(SketchKind)}


def sketches(stored: pa.Array, kind: SketchType) -> pa.Array:
    """A column of this type of an array of bytes."""
    return pa.ExtensionArray.from_storage(kind, stored)
