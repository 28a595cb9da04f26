"""The specs a form starts with: of a share group as Druid's document shows it, of stored offsets, and of a batch task.

What the writer must choose has a name that is refused as long as it stands there.
"""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

from controlplane.common.errors import FieldError, InvalidInput
from controlplane.tasks.models import Task
from ingestion.specs.source_traits import OFFSET_RANGE, SHARE_GROUP

BATCH = str(Task.Kind.INDEX_PARALLEL)
_TO_FILL_IN = {
    ("dataSchema", "dataSource"): ("your_datasource", "the datasource that the rows go to"),
    ("ioConfig", "topic"): ("your_topic", "the topic to read"),
    ("ioConfig", "groupId"): ("your_group", "the share group to read as"),
}


def examples(supervised: bool) -> dict[str, dict[str, Any]]:
    """By kind of task; each works on the embedded stack once it is filled in, and its topic, if any, is there."""
    stored = _stored_offsets(OFFSET_RANGE.supervisor_type if supervised else OFFSET_RANGE.task_type)
    by_kind = {SHARE_GROUP.kind: _share_group(), OFFSET_RANGE.kind: stored}
    return by_kind if supervised else {**by_kind, BATCH: _batch()}


def with_connection(example: dict[str, Any], connection: str, topic: str) -> dict[str, Any]:
    """An example that reads a topic of a named connection."""
    io_config = {n: v for n, v in example["ioConfig"].items() if n not in ("topic", "consumerProperties")}
    return {**example, "ioConfig": {"topic": topic, "connection": connection, **io_config}}


def check_filled_in(document: Any) -> None:
    """Raise ``InvalidInput`` with each place of a form's example that is as it was."""
    parts = document.get("spec", document) if isinstance(document, dict) else {}
    root = "/spec" if parts is not document else ""
    faults = [
        FieldError(f"{root}/{part}/{field}", f"{name!r} is only an example: enter {what}.", f"{part}.{field}")
        for (part, field), (name, what) in _TO_FILL_IN.items()
        if isinstance(parts, dict) and isinstance(parts.get(part), dict) and parts[part].get(field) == name
    ]
    if faults:
        raise InvalidInput("Fill in the example first.", faults)


def _name(part: str, field: str) -> str:
    return _TO_FILL_IN[part, field][0]


def _batch() -> dict[str, Any]:
    shared = _share_group()
    rows = [{"time": f"2025-06-01T{hour:02}:00:00Z", "page": "main", "added": hour} for hour in range(3)]
    return {
        "type": BATCH,
        "dataSchema": {**shared["dataSchema"], "timestampSpec": {"column": "time", "format": "iso"}},
        "ioConfig": {
            "type": BATCH,
            "inputSource": {"type": "inline", "data": "\n".join(map(json.dumps, rows))},
            "inputFormat": {"type": "json"},
            "appendToExisting": True,
        },
        "tuningConfig": {"type": BATCH, "maxNumConcurrentSubTasks": 2},
    }


def _stored_offsets(spec_type: str) -> dict[str, Any]:
    shared = _share_group()
    fields = ("topic", "consumerProperties", "inputFormat")
    return {
        "type": spec_type,
        "dataSchema": shared["dataSchema"],
        "ioConfig": {**{k: shared["ioConfig"][k] for k in fields}, "useEarliestOffset": True, "taskCount": 1},
        "tuningConfig": {"type": OFFSET_RANGE.supervisor_type},
    }


def _share_group() -> dict[str, Any]:
    return {
        "type": SHARE_GROUP.task_type,
        "dataSchema": {
            "dataSource": _name("dataSchema", "dataSource"),
            "timestampSpec": {"column": "__time", "format": "auto"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
        },
        "ioConfig": {
            "topic": _name("ioConfig", "topic"),
            "groupId": _name("ioConfig", "groupId"),
            "consumerProperties": {"bootstrap.servers": settings.DEFAULT_BOOTSTRAP or "kafka-broker:9092"},
            "inputFormat": {"type": "json"},
            "pollTimeout": 2000,
        },
        "tuningConfig": {"type": "KafkaTuningConfig", "maxRowsPerSegment": 5_000_000},
    }
