"""The specs a form starts with: the share-group task as Druid's document shows it, and one with stored offsets."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def examples(supervised: bool) -> dict[str, dict[str, Any]]:
    """By kind of source; each works on the embedded stack once its topic is there."""
    return {"share_group": _share_group(), "offset_range": _stored_offsets("kafka" if supervised else "index_kafka")}


def _stored_offsets(spec_type: str) -> dict[str, Any]:
    shared = _share_group()
    taken = ("topic", "consumerProperties", "inputFormat")
    return {
        "type": spec_type,
        "dataSchema": shared["dataSchema"],
        "ioConfig": {**{k: shared["ioConfig"][k] for k in taken}, "useEarliestOffset": True, "taskCount": 1},
        "tuningConfig": {"type": "kafka"},
    }


def _share_group() -> dict[str, Any]:
    return {
        "type": "index_kafka_share_group",
        "dataSchema": {
            "dataSource": "my_datasource",
            "timestampSpec": {"column": "__time", "format": "auto"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
        },
        "ioConfig": {
            "topic": "my_topic",
            "groupId": "druid-share-group",
            "consumerProperties": {"bootstrap.servers": settings.DEFAULT_BOOTSTRAP or "kafka-broker:9092"},
            "inputFormat": {"type": "json"},
            "pollTimeout": 2000,
        },
        "tuningConfig": {"type": "KafkaTuningConfig", "maxRowsPerSegment": 5_000_000},
    }
