"""Datasources and segments in the formats of Druid's Coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import prefetch_related_objects

from controlplane.api.druid.openapi import ANYTHING, FLAG, NUMBER, TEXT, TIME, Schema, array, named, nullable, shape
from controlplane.api.druid.shapes import instant
from controlplane.compaction.schemas import WriteSpec, write_specs_of
from controlplane.datasources.models import Datasource
from controlplane.retention.storage_summary import StorageSummary
from controlplane.segments.models import Segment
from ingestion.specs.schema.data_schema import DataSchema

TIER = "_default_tier"  # there is one place where segments are
_TIME = "__time"

_FIELDS: dict[str, Schema] = {
    "dataSource": TEXT,
    "interval": TEXT,
    "version": TEXT,
    "loadSpec": {**shape(type=TEXT, path=TEXT), "required": ["type"]},
    "dimensions": TEXT,
    "metrics": TEXT,
    "shardSpec": shape(type={"const": "numbered"}, partitionNum=NUMBER, partitions=NUMBER),
    "binaryVersion": NUMBER,
    "size": NUMBER,
    "identifier": TEXT,
}
SEGMENT = shape(**_FIELDS)
WITH_STATUS = shape(overshadowed=FLAG, replicationFactor=NUMBER, numRows=NUMBER, realtime=FLAG, **_FIELDS)
LOADED = shape(metadata=SEGMENT, servers=array(TEXT))
SIMPLE = shape(
    tiers=named(shape(size=NUMBER, replicatedSize=NUMBER, segmentCount=NUMBER)),
    segments=shape(maxTime=nullable(TIME), minTime=nullable(TIME), size=NUMBER, replicatedSize=NUMBER, count=NUMBER),
)
FULL = shape(name=TEXT, properties=ANYTHING, segments=array(SEGMENT))
UNUSED = shape(
    dataSegment=SEGMENT,
    createdDate=TIME,
    usedStatusLastUpdatedDate=TIME,
    used=FLAG,
    schemaFingerprint=nullable(TEXT),
    numRows=NUMBER,
    upgradedFromSegmentId=nullable(TEXT),
)


def interval(start: datetime, end: datetime) -> str:
    """An interval in Druid's format."""
    return f"{instant(start)}/{instant(end)}"


def data_segments(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Druid's ``DataSegment`` of each segment. Its ``loadSpec`` names a Parquet file below deep storage.

    The ``loadSpec`` has no path if columns are masked for the user to whom the segments were ``shown_to``.
    """
    prefetch_related_objects(segments, "schema")
    write_specs = write_specs_of({s.task_id for s in segments})
    metrics = {task: _metrics(write_spec) for task, write_spec in write_specs.items()}
    return [_data_segment(s, metrics.get(s.task_id, frozenset())) for s in segments]


def _metrics(write_spec: WriteSpec) -> frozenset[str]:
    schema = DataSchema.model_validate(write_spec.data_schema)
    return frozenset(metric.name for metric in schema.metricsSpec)


def _data_segment(segment: Segment, metrics: frozenset[str]) -> dict[str, Any]:
    names = [c["name"] for c in segment.columns if c["name"] != _TIME]
    return {
        "dataSource": segment.datasource.name,
        "interval": interval(segment.interval_start, segment.interval_end),
        "version": segment.version,
        "loadSpec": {"type": "parquet", **({} if segment.concealed_for else {"path": segment.path})},
        "dimensions": ",".join(n for n in names if n not in metrics),
        "metrics": ",".join(n for n in names if n in metrics),
        "shardSpec": {"type": "numbered", "partitionNum": segment.partition_num, "partitions": 0},
        "binaryVersion": 9,
        "size": segment.size_bytes,
        "identifier": segment.identifier,
    }


def with_status(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Adds the field of ``includeOvershadowedStatus``. No used segment is overshadowed."""
    return [
        {"overshadowed": False, "replicationFactor": 1, "numRows": s.rows, "realtime": False, **data_segment}
        for s, data_segment in zip(segments, data_segments(segments), strict=True)
    ]


def unused(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Druid's ``DataSegmentPlus`` of each segment."""
    return [
        {
            "dataSegment": data_segment,
            "createdDate": instant(s.created_at),
            "usedStatusLastUpdatedDate": instant(s.unused_at),
            "used": False,
            "schemaFingerprint": None,
            "numRows": s.rows,
            "upgradedFromSegmentId": None,
        }
        for s, data_segment in zip(segments, data_segments(segments), strict=True)
    ]


def loaded(data_segment: dict[str, Any]) -> dict[str, Any]:
    """A segment and its servers, of which there are none, because readers read deep storage."""
    return {"metadata": data_segment, "servers": []}


def by_interval(segments: Sequence[Segment]) -> dict[str, dict[str, Any]]:
    """Segments and their servers, by interval and identifier."""
    grouped: dict[str, dict[str, Any]] = {}
    for data_segment in data_segments(segments):
        grouped.setdefault(data_segment["interval"], {})[data_segment["identifier"]] = loaded(data_segment)
    return grouped


def simple(summary: StorageSummary) -> dict[str, Any]:
    """A datasource's number of segments, size and time range."""
    size = summary.size_bytes
    return {
        "tiers": {TIER: {"size": size, "replicatedSize": size, "segmentCount": summary.segments}},
        "segments": {
            "maxTime": instant(summary.end),
            "size": size,
            "minTime": instant(summary.start),
            "count": summary.segments,
            "replicatedSize": size,
        },
    }


def full(datasource: Datasource, segments: Iterable[Segment]) -> dict[str, Any]:
    """A datasource with its used segments."""
    created = {"created": instant(datasource.created_at)}
    return {"name": datasource.name, "properties": created, "segments": data_segments(list(segments))}
