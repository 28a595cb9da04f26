"""Metrics that are sketches, and what is in a serialised one: bytes of the same sketch may differ in their order."""

from __future__ import annotations

import base64
import struct
from typing import Any

import datasketches

from ingestion.specs.schema.data_schema import DataSchema

KINDS = {
    "HLLSketchBuild": "hll",
    "HLLSketchMerge": "hll",
    "thetaSketch": "theta",
    "quantilesDoublesSketch": "quantiles",
}
HLL: dict[str, Any] = {"type": "HLLSketchBuild", "name": "users", "fieldName": "u"}
THETA: dict[str, Any] = {"type": "thetaSketch", "name": "theta", "fieldName": "u"}
QUANTILES: dict[str, Any] = {"type": "quantilesDoublesSketch", "name": "times", "fieldName": "ms"}
ALL = [{"type": "count", "name": "n"}, HLL, THETA, QUANTILES]
_SET = 1  # the mode of an HLL sketch that has more coupons than a list; in the next one it estimates


def schema_of(metrics: list[dict[str, Any]] = ALL, rollup: bool = True, **more: Any) -> DataSchema:
    document = {
        "dataSource": "d",
        "timestampSpec": {"column": "t", "format": "millis"},
        "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": metrics,
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": rollup},
    }
    return DataSchema.model_validate(document | more)


def contents(how: str, stored: bytes) -> dict[str, Any]:
    """All of it; of an HLL sketch that no longer knows its values the estimate."""
    if how == "hll":
        return _hll(stored)
    if how == "theta":
        theta = datasketches.compact_theta_sketch.deserialize(stored)
        return {"hashes": sorted(theta), "theta": theta.theta64}
    quantiles = datasketches.quantiles_doubles_sketch.deserialize(stored)
    ranks = [(i + 0.5) / quantiles.n for i in range(quantiles.n)]
    return {"k": quantiles.k, "n": quantiles.n, "values": quantiles.get_quantiles(ranks) if ranks else []}


def _hll(stored: bytes) -> dict[str, Any]:
    sketch = datasketches.hll_sketch.deserialize(stored)
    told = {"lgK": sketch.lg_config_k, "type": str(sketch.tgt_type)}
    mode = stored[7] & 3
    if mode > _SET:
        return {**told, "estimate": sketch.get_estimate()}
    count, start = (struct.unpack_from("<I", stored, 8)[0], 12) if mode == _SET else (stored[6], 8)
    return {**told, "coupons": sorted(struct.unpack_from(f"<{count}I", stored, start))}


def with_contents(metrics: list[dict[str, Any]], row: dict[str, Any]) -> dict[str, Any]:
    """A sampler's row, with what is in the sketches of these metrics for their base64; ours has that in an object."""
    for metric in metrics:
        inner = metric
        while inner.get("aggregator"):
            inner = inner["aggregator"]
        name = str(metric.get("name") or inner.get("name"))
        if inner.get("type") in KINDS and row.get(name):
            stored = row[name]["sketch"] if isinstance(row[name], dict) else row[name]
            row = {**row, name: contents(KINDS[inner["type"]], base64.b64decode(stored))}
    return row
