"""Several sketches to one, of the form that a metric asks for."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.sketches import hll_form, quantiles_form, theta_form
from ingestion.sketches.library import library
from ingestion.sketches.types import SKETCH_TYPES, SketchType, sketches
from ingestion.specs.schema.sketch_metrics import QuantilesMetric, SketchMetric, ThetaMetric

Integers = npt.NDArray[np.int64]


class Union(Protocol):
    """Makes one sketch of serialised ones, none at all too. Whatever the library says of bytes that are no sketch
    passes through. ``is_valid``: whether the bytes are a sketch of the kind; others could end the process.
    """

    def merge(self, parts: Sequence[bytes]) -> bytes: ...

    def is_valid(self, stored: bytes) -> bool: ...


@dataclass(frozen=True)
class HllUnion:
    lg_k: int
    kind: str  # HLL_4, HLL_6 or HLL_8

    def merge(self, parts: Sequence[bytes]) -> bytes:
        d = library()
        union = d.hll_union(self.lg_k)
        for part in dict.fromkeys(parts):
            union.update(d.hll_sketch.deserialize(part))
        sketch: bytes = union.get_result(getattr(d, self.kind)).serialize_compact()
        return sketch

    def is_valid(self, stored: bytes) -> bool:
        return hll_form.is_sound(stored)


@dataclass(frozen=True)
class ThetaUnion:
    lg_k: int

    def merge(self, parts: Sequence[bytes]) -> bytes:
        d = library()
        union = d.theta_union(self.lg_k)
        for part in dict.fromkeys(parts):
            union.update(d.compact_theta_sketch.deserialize(part))
        sketch: bytes = union.get_result().serialize()
        return sketch

    def is_valid(self, stored: bytes) -> bool:
        return theta_form.is_sound(stored)


@dataclass(frozen=True)
class QuantilesUnion:
    k: int

    def merge(self, parts: Sequence[bytes]) -> bytes:
        d = library()
        union = d.quantiles_doubles_sketch(self.k)
        for part in parts:
            union.merge(d.quantiles_doubles_sketch.deserialize(part))
        sketch: bytes = union.serialize()
        return sketch

    def is_valid(self, stored: bytes) -> bool:
        return quantiles_form.is_sound(stored)


@dataclass(frozen=True)
class Merger:
    """Merges a column of one kind."""

    union: Union
    type: SketchType

    @classmethod
    def of(cls, metric: SketchMetric) -> Merger:
        return cls(_union_of(metric), SKETCH_TYPES[metric.kind])

    def merged(self, column: pa.Array, starts: Integers) -> pa.Array:
        """One sketch for each run of rows that begins at one of ``starts``; null where all of its rows are null."""
        if len(starts) == len(column):
            return column
        values = column.storage.to_pylist()
        ends = [*starts[1:].tolist(), len(values)]
        parts = (values[start:end] for start, end in zip(starts.tolist(), ends, strict=True))
        return sketches(pa.array([self.one(part) for part in parts], pa.binary()), self.type)

    def one(self, values: Sequence[bytes | None]) -> bytes | None:
        """One sketch of these; a single one stays as it is."""
        present = [value for value in values if value is not None]
        return self.union.merge(present) if len(present) > 1 else present[0] if present else None

    def merged_lists(self, lists: pa.Array) -> pa.Array:
        """One sketch for each list of bytes."""
        return sketches(pa.array([self.one(part or ()) for part in lists.to_pylist()], pa.binary()), self.type)


def _union_of(metric: SketchMetric) -> Any:
    if isinstance(metric, ThetaMetric):
        return ThetaUnion(int(math.log2(metric.size)))
    if isinstance(metric, QuantilesMetric):
        return QuantilesUnion(metric.k)
    return HllUnion(metric.lgK, metric.tgtHllType)


def read_sketch(text: str, merger: Merger) -> bytes | None:
    """The sketch, in the form that the metric asks for; None if the text is none of that kind.

    As in Druid, padding may be left out whole.
    """
    try:
        padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
        raw = base64.b64decode(text + padding, validate=True)
        return merger.union.merge([raw]) if merger.union.is_valid(raw) else None
    except (binascii.Error, RuntimeError, ValueError, IndexError, MemoryError):
        return None
