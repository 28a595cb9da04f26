"""What stored sketches tell, as functions of DuckDB: ``sketch_distinct(list(x), 'hll')``, also ``'theta'``, is how many
different values there are, ``sketch_quantile(list(x), 0.5)`` a number, ``sketch_rank(list(x), 7)`` what share of the
numbers is not greater. Without a sketch all are NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
from duckdb.func import FunctionNullHandling

from ingestion.query.functions import SKETCH_FUNCTIONS
from ingestion.sketches.library import library
from ingestion.sketches.merging import HllUnion, QuantilesUnion, ThetaUnion

# The largest of each kind: a merged sketch is as exact as the least exact one of its parts.
_HLL, _THETA, _QUANTILES = HllUnion(21, "HLL_8"), ThetaUnion(26), QuantilesUnion(32_768)
_FAILED = "Python exception occurred while executing the UDF: ValueError: "


def add_sketch_functions(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Only for a statement that may call them: it takes longer than many queries."""
    if any(name in sql.lower() for name in SKETCH_FUNCTIONS):
        for name, function, second in _FUNCTIONS:
            types: list[Any] = ["BLOB[]", second]
            engine.create_function(
                f"sketch_{name}", function, types, "DOUBLE", null_handling=FunctionNullHandling.SPECIAL
            )


def without_python(message: str) -> str:
    """An error of these functions, without DuckDB's words about who has raised it."""
    return message.replace(_FAILED, "")


def _distinct(parts: Sequence[bytes | None] | None, kind: str | None) -> float | None:
    if kind not in ("hll", "theta"):
        raise ValueError("sketch_distinct takes the kind 'hll' or 'theta'.")
    merged = _merged(_HLL if kind == "hll" else _THETA, kind, parts)
    if merged is None:
        return None
    d = library()
    read = d.hll_sketch.deserialize if kind == "hll" else d.compact_theta_sketch.deserialize
    estimate: float = read(merged).get_estimate()
    return estimate


def _quantile(parts: Sequence[bytes | None] | None, rank: float | None) -> float | None:
    if rank is None or not 0 <= rank <= 1:
        raise ValueError("sketch_quantile takes a number from 0 to 1.")
    merged = _merged(_QUANTILES, "quantiles", parts)
    if merged is None:
        return None
    sketch = library().quantiles_doubles_sketch.deserialize(merged)
    return float("nan") if sketch.is_empty() else float(sketch.get_quantile(rank, True))


def _rank(parts: Sequence[bytes | None] | None, number: float | None) -> float | None:
    merged = None if number is None else _merged(_QUANTILES, "quantiles", parts)
    if merged is None:
        return None
    sketch = library().quantiles_doubles_sketch.deserialize(merged)
    return float("nan") if sketch.is_empty() else float(sketch.get_rank(number, True))


def _merged(union: Any, kind: str, parts: Sequence[bytes | None] | None) -> bytes | None:
    """Bytes that are no sketch could end the process."""
    present = [part for part in parts or () if part is not None]
    if not all(map(union.is_valid, present)):
        raise ValueError(f"A value is no {kind} sketch.")
    merged: bytes | None = union.merge(present) if present else None
    return merged


_FUNCTIONS = (("distinct", _distinct, "VARCHAR"), ("quantile", _quantile, "DOUBLE"), ("rank", _rank, "DOUBLE"))
