"""Druid's sampler address."""

from __future__ import annotations

from typing import Any, get_args

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid.base import DruidView
from controlplane.api.v1.serializers.sampling import SampleBody
from controlplane.datasources.sampling import take_sample
from ingestion.specs.messages.protocol import Column
from ingestion.specs.messages.sampler_spec import SamplerSpec
from ingestion.specs.messages.sampling import RolledUpRow, SampleAnswer, SampledRecord
from ingestion.specs.schema.metric_base import SketchKind

_SKETCHES = frozenset(get_args(SketchKind))
# Our type of a column → that of a dimension, and of a segment's column.
_TYPES = {
    "string": ("string", "STRING"),
    "strings": ("string", "STRING"),
    "long": ("long", "LONG"),
    "double": ("double", "DOUBLE"),
    "boolean": ("long", "LONG"),
    "timestamp": ("long", "LONG"),
    "json": ("json", "COMPLEX<json>"),
    **{kind: (kind, kind) for kind in _SKETCHES},
}
_UNREAD = "The spec has no inputFormat, so the records cannot be decoded."


class SamplerView(DruidView):
    @extend_schema(
        operation_id="druid_sample", tags=["Druid-shaped"], request=SampleBody, responses=OpenApiTypes.OBJECT
    )
    def post(self, request: Request) -> Response:
        """Preview the rows that a spec, which may be unfinished, makes of some records."""
        spec, answer = take_sample(user=self.actor, document=request.data, team_name=self.team_name)
        return Response(sample_response(spec, answer))


def sample_response(spec: SamplerSpec, answer: SampleAnswer) -> dict[str, Any]:
    """Druid's response.

    As in Druid, a rolled-up row appears only at its first record. A record with a faulty field has its row, is
    unparseable, and does not count as indexed.
    """
    data = [entry for record in answer.records for entry in _entries(record)]
    if answer.rollup is not None:
        _roll_up(data, answer.rollup)
    for entry in data:
        _write_sketches(entry.get("parsed", {}), answer.columns)
    schema = spec.order.data_schema
    metrics = {m.name for m in schema.metricsSpec}
    dimensions = [c for c in answer.columns if c.name not in metrics and c.type != "timestamp"]
    named = {d.name: d.type for d in schema.dimensionsSpec.dimensions}
    discovered = "string" if schema.dimensionsSpec.discovers_strings else "auto"
    return {
        "numRowsRead": len(data),
        "numRowsIndexed": sum(
            max(1, len(record.stored_rows)) for record in answer.records if record.outcome == "stored"
        ),
        "logicalDimensions": [_dimension(c.name, _TYPES[c.type][0]) for c in dimensions],
        "physicalDimensions": [_dimension(c.name, named.get(c.name, discovered)) for c in dimensions],
        "logicalSegmentSchema": [{"name": c.name, "type": _TYPES[c.type][1]} for c in _with_time(answer.columns)],
        "data": [entry for entry in data if "parsed" in entry or "unparseable" in entry],
    }


def _entries(record: SampledRecord) -> list[dict[str, Any]]:
    """One entry for each row of the record."""
    others = [_entry(record.model_copy(update={"fields": r.fields, "row": r.row, "error": ""})) for r in record.further]
    if record.outcome == "unparseable":
        others = [{} for _ in others]
    nothing: list[dict[str, Any]] = [{} for _ in range(record.held - len(others) - 1)]
    return [_entry(record), *others, *nothing]


def _entry(record: SampledRecord) -> dict[str, Any]:
    entry: dict[str, Any] = {} if record.fields is None else {"input": record.fields}
    if record.outcome == "raw":
        return {"input": {"raw": _raw(record)}, "unparseable": True, "error": _UNREAD}
    if record.outcome == "unparseable":
        return {**entry, "unparseable": True, "error": record.error}
    if record.row is not None:
        entry["parsed"] = {"__time": 0, **record.row}
    if record.outcome == "processed_with_error" and record.error:
        return {**entry, "unparseable": True, "error": record.error}
    return {**entry, "error": record.error} if record.error else entry


def _raw(record: SampledRecord) -> str | None:
    return None if record.payload is None else record.payload.start.decode(errors="replace")


def _roll_up(data: list[dict[str, Any]], rows: list[RolledUpRow]) -> None:
    for row in rows:
        first, *others = row.rows
        data[first]["parsed"] = {"__time": 0, **row.row}
        for other in others:
            data[other].pop("parsed", None)


def _write_sketches(row: dict[str, Any], columns: list[Column]) -> None:
    """Replace each sketch by its bytes, as Druid does."""
    for column in columns:
        if column.type in _SKETCHES and column.name in row:
            row[column.name] = row[column.name]["sketch"]


def _with_time(columns: list[Column]) -> list[Column]:
    """Druid's rows always have a time."""
    if any(c.name == "__time" for c in columns):
        return columns
    return [Column(name="__time", type="timestamp"), *columns]


def _dimension(name: str, kind: str) -> dict[str, Any]:
    bitmap = kind not in ("long", "float", "double")
    return {"type": kind, "name": name, "multiValueHandling": "SORTED_ARRAY", "createBitmapIndex": bitmap}
