"""The spec a form starts with: the share-group task as Druid's document shows it."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def example() -> dict[str, Any]:
    """A spec that works on the embedded stack once its topic is there."""
    return {
        "type": "index_kafka_share_group",
        "dataSchema": {
            "dataSource": "my_datasource",
            "timestampSpec": {"column": "__time", "format": "auto"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE"},
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
