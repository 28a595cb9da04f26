"""Supervisor specs as people write them, and what a real Druid's own GET makes of each: recorded, and to be taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.druid_overlord import V1, asked

GOLDEN = Path(__file__).parent.parent / "golden" / "druid_specs.json"
_SCHEMA: dict[str, Any] = {
    "timestampSpec": {"column": "t", "format": "auto"},
    "dimensionsSpec": {"dimensions": ["a", "b"]},
    "granularitySpec": {"segmentGranularity": "HOUR"},
}
_READING: dict[str, Any] = {
    "topic": "a-topic",
    "consumerProperties": {"bootstrap.servers": "localhost:1"},
    "inputFormat": {"type": "json"},
}
_SCALER = {"enableTaskAutoScaler": True, "taskCountMax": 6, "taskCountMin": 2}
_DIMENSIONS = [
    "a",
    {"type": "string", "name": "b", "multiValueHandling": "ARRAY", "createBitmapIndex": False},
    *({"type": kind, "name": f"a_{kind}"} for kind in ("long", "float", "double", "json", "auto")),
]
_METRICS = [
    {"type": "count", "name": "count"},
    *(
        {"type": f"{kind}{what}", "name": f"{kind}{what}", "fieldName": "v"}
        for kind in ("long", "double", "float")
        for what in ("Sum", "Min", "Max", "First", "Last")
    ),
    {"type": "stringFirst", "name": "sf", "fieldName": "s", "maxStringBytes": 100},
    {"type": "stringLast", "name": "sl", "fieldName": "s"},
    {"type": "longAny", "name": "la", "fieldName": "v"},
]
_FILTERS: dict[str, Any] = {
    "selector": {"type": "selector", "dimension": "a", "value": "x"},
    "selector of null": {"type": "selector", "dimension": "a", "value": None},
    "in": {"type": "in", "dimension": "a", "values": ["x", "y"]},
    "bound": {"type": "bound", "dimension": "n", "lower": "1", "ordering": "numeric"},
    "like": {"type": "like", "dimension": "a", "pattern": "x%"},
    "not": {"type": "not", "field": {"type": "selector", "dimension": "a", "value": "x"}},
    "and": {"type": "and", "fields": [{"type": "selector", "dimension": "a", "value": "x"}, {"type": "true"}]},
    "equals": {"type": "equals", "column": "a", "matchValueType": "STRING", "matchValue": "x"},
    "null": {"type": "null", "column": "a"},
    "range": {"type": "range", "column": "n", "matchValueType": "LONG", "lower": 1, "upper": 5},
    "expression": {"type": "expression", "expression": "n > 1"},
}
_SCHEMAS: dict[str, Any] = {
    "dimensions": {"dimensionsSpec": {"dimensions": _DIMENSIONS}},
    "no dimensions": {"dimensionsSpec": {"dimensions": []}},
    "discovery": {"dimensionsSpec": {"useSchemaDiscovery": True}},
    "all dimensions": {"dimensionsSpec": {"dimensions": ["a"], "includeAllDimensions": True}},
    "exclusions": {"dimensionsSpec": {"dimensions": [], "dimensionExclusions": ["v"]}},
    "metrics": {"metricsSpec": _METRICS},
    "no rollup": {"granularitySpec": {"rollup": False}},
    "minutes": {"granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "MINUTE"}},
    "period": {"granularitySpec": {"segmentGranularity": {"type": "period", "period": "P1D"}}},
    "missing time": {"timestampSpec": {"column": "t", "format": "millis", "missingValue": "2020-01-01T00:00:00Z"}},
    "transforms": {"transformSpec": {"transforms": [{"type": "expression", "name": "c", "expression": "upper(a)"}]}},
    **{f"filter: {name}": {"transformSpec": {"filter": value}} for name, value in _FILTERS.items()},
}
_FORMATS: dict[str, Any] = {
    "json with flattening": {
        "type": "json",
        "flattenSpec": {"useFieldDiscovery": True, "fields": [{"type": "path", "name": "p", "expr": "$.a.b"}]},
    },
    "csv": {"type": "csv", "columns": ["t", "a", "b"]},
    "tsv": {"type": "tsv", "columns": ["t", "a", "b"], "delimiter": "|", "listDelimiter": ";"},
    "kafka": {"type": "kafka", "valueFormat": {"type": "json"}},
    "kafka with all": {
        "type": "kafka",
        "headerFormat": {"type": "string"},
        "keyFormat": {"type": "csv", "columns": ["k"], "findColumnsFromHeader": False},
        "valueFormat": {"type": "json"},
        "headerColumnPrefix": "h.",
        "keyColumnName": "key",
        "timestampColumnName": "kt",
        "topicColumnName": "topic",
    },
}
_IO: dict[str, Any] = {
    "replicas and tasks": {"replicas": 2, "taskCount": 3},
    "durations": {"taskDuration": "PT10M", "startDelay": "PT1S", "period": "PT10S", "completionTimeout": "PT1H"},
    "earliest": {"useEarliestOffset": True},
    "late": {"lateMessageRejectionPeriod": "PT1H", "earlyMessageRejectionPeriod": "PT2H"},
    "late start": {"lateMessageRejectionStartDateTime": "2020-01-01T00:00:00Z"},
    "idle": {"idleConfig": {"enabled": True, "inactiveAfterMillis": 600000}},
    "autoscaler": {"autoScalerConfig": _SCALER},
    "autoscaler off": {"autoScalerConfig": {"enableTaskAutoScaler": False, "taskCountMax": 4, "taskCountMin": 1}},
    "stopTaskCount": {"stopTaskCount": 2, "taskCount": 3},
    "time lag": {"emitTimeLagMetrics": True},
    **{f"format: {name}": {"inputFormat": value} for name, value in _FORMATS.items()},
}
_TUNING: dict[str, Any] = {
    "none": None,
    "limits": {"maxRowsInMemory": 5000, "maxBytesInMemory": 100_000_000, "maxRowsPerSegment": 9, "maxTotalRows": 90},
    "unlimited bytes": {"maxBytesInMemory": -1},
    "parse exceptions": {"reportParseExceptions": True, "logParseExceptions": True, "maxParseExceptions": 7},
    "handoff": {"intermediateHandoffPeriod": "PT1M", "intermediatePersistPeriod": "PT5M", "maxPendingPersists": 2},
    "compression": {"indexSpec": {"dimensionCompression": "zstd", "longEncoding": "auto"}},
    "front coding": {"indexSpec": {"stringDictionaryEncoding": {"type": "frontCoded", "bucketSize": 4}}},
    "threads": {"workerThreads": 2, "chatRetries": 3, "numPersistThreads": 2, "maxColumnsToMerge": 100},
    "checks": {"skipSequenceNumberAvailabilityCheck": True, "skipBytesInMemoryOverheadCheck": True},
    "medium": {"segmentWriteOutMediumFactory": {"type": "onHeapMemory"}},
    "index": {"appendableIndexSpec": {"type": "onheap"}},
    "reset": {"resetOffsetAutomatically": True},
}


def specs() -> dict[str, dict[str, Any]]:
    """By name, each with a datasource of its own."""
    found = {f"schema: {name}": _spec(schema=schema) for name, schema in _SCHEMAS.items()}
    found |= {f"reading: {name}": _spec(reading=reading) for name, reading in _IO.items()}
    found |= {f"tuning: {name}": _spec(tuning=tuning) for name, tuning in _TUNING.items()}
    for number, spec in enumerate(found.values()):
        spec["spec"]["dataSchema"]["dataSource"] = f"recorded_{number}"
    return found


def _spec(schema: Any = None, reading: Any = None, tuning: Any = None) -> dict[str, Any]:
    parts = {"dataSchema": {**_SCHEMA, **(schema or {})}, "ioConfig": {**_READING, **(reading or {})}}
    tuned = {} if tuning is None else {"tuningConfig": {"type": "kafka", **tuning}}
    return {"type": "kafka", "suspended": True, "spec": {**parts, **tuned}}


def record(overlord: str, version: str) -> None:
    """Write to ``GOLDEN`` what Druid shows of each spec after it was posted; null where Druid refuses it."""
    shown: dict[str, Any] = {}
    for name, spec in specs().items():
        answer = asked(overlord, f"{V1}/supervisor", spec)
        if answer["status"] != 200:
            shown[name] = None
            continue
        path = f"{V1}/supervisor/{answer['body']['id']}"
        shown[name] = asked(overlord, path)["body"]
        asked(overlord, f"{path}/terminate", method="POST")
    lines = [f"  {json.dumps(name)}: {json.dumps(spec)}" for name, spec in shown.items()]
    head = f'{{\n "druid": {json.dumps(version)},\n "specs": {{\n'
    GOLDEN.write_text(head + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


LISTED = GOLDEN.with_name("druid_supervisors.json")
_OF_LIST = ("schema: transforms", "reading: idle", "reading: autoscaler", "tuning: limits")


def record_list(overlord: str, version: str) -> None:
    """Write to ``LISTED`` what Druid answers to ``?full`` of some supervisors."""
    asked_for = specs()
    ids = [asked(overlord, f"{V1}/supervisor", asked_for[name])["body"]["id"] for name in _OF_LIST]
    listed = asked(overlord, f"{V1}/supervisor?full")["body"]
    for made in ids:
        asked(overlord, f"{V1}/supervisor/{made}/terminate", method="POST")
    found = sorted((e for e in listed if e["id"] in ids), key=lambda e: ids.index(e["id"]))
    LISTED.write_text(json.dumps({"druid": version, "supervisors": found}, indent=1) + "\n", encoding="utf-8")
