"""What a sketch tells, for whom looks at rows."""

from __future__ import annotations

import math
from typing import Any

from ingestion.sketches.library import library

_DIGITS = 2


class UnreadableSketch(Exception):
    """The bytes are no sketch of that kind."""


def describe_sketch(kind: str, stored: bytes) -> dict[str, Any]:
    """Of HLL and theta ``estimate``, how many distinct values; of quantiles ``n``, and if there are values ``min``,
    ``median``, ``max``. Raises ``UnreadableSketch``.
    """
    try:
        return _describe(kind, stored)
    except (RuntimeError, ValueError, IndexError, MemoryError) as error:
        raise UnreadableSketch(f"a value is no {kind}") from error


def _describe(kind: str, stored: bytes) -> dict[str, Any]:
    d = library()
    if kind == "COMPLEX<HLLSketch>":
        return {"estimate": round(d.hll_sketch.deserialize(stored).get_estimate(), _DIGITS)}
    if kind == "COMPLEX<thetaSketch>":
        return {"estimate": round(d.compact_theta_sketch.deserialize(stored).get_estimate(), _DIGITS)}
    sketch = d.quantiles_doubles_sketch.deserialize(stored)
    if sketch.is_empty():
        return {"n": 0}
    ends = {"min": sketch.get_min_value(), "median": sketch.get_quantile(0.5), "max": sketch.get_max_value()}
    return {"n": sketch.n, **{name: value if math.isfinite(value) else None for name, value in ends.items()}}
