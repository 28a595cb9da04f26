"""What the demo submits."""

from __future__ import annotations

from typing import Any

FLIGHTS_TOPIC = FLIGHTS_DATASOURCE = "flights"
EXAMPLE_TOPIC = "druid-share-test"
EXAMPLE_DATASOURCE = "my_datasource"

Spec = dict[str, Any]


def flights_supervisor(bootstrap: str) -> Spec:
    """Keeps two indexers reading the flights, one segment interval a day."""
    return {
        "type": "index_kafka_share_group",
        "dataSchema": {
            "dataSource": FLIGHTS_DATASOURCE,
            "timestampSpec": {"column": "time_hour", "format": "iso"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
        },
        "ioConfig": {
            "topic": FLIGHTS_TOPIC,
            "groupId": "headgate-flights",
            "consumerProperties": {"bootstrap.servers": bootstrap},
            "inputFormat": {"type": "json"},
            "taskCount": 2,
        },
        "tuningConfig": {"type": "KafkaTuningConfig"},
    }


def example_task(bootstrap: str) -> Spec:
    """The task of Druid's documentation of share-group ingestion, reading the topic of its demo."""
    return {
        "type": "index_kafka_share_group",
        "dataSchema": {
            "dataSource": EXAMPLE_DATASOURCE,
            "timestampSpec": {"column": "__time", "format": "auto"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
        },
        "ioConfig": {
            "topic": EXAMPLE_TOPIC,
            "groupId": "druid-share-group",
            "consumerProperties": {"bootstrap.servers": bootstrap},
            "inputFormat": {"type": "json"},
            "pollTimeout": 2000,
        },
        "tuningConfig": {"type": "KafkaTuningConfig", "maxRowsPerSegment": 5000000},
    }
