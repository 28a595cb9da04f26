"""Specs of Druid's two documents: their samples as they stand, and every option of their tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.tasks.diagnosis import options_without_effect
from ingestion.specs.errors import SpecError
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec, parse_task_spec
from tests.unit.test_specs import SEED, changed, nested

PAGE = Path(__file__).resolve().parents[2] / "docs" / "druid.md"
# The supervisor spec of the document "Apache Kafka ingestion", as it stands there.
SAMPLE = json.loads("""
{
  "type": "kafka",
  "dataSchema": {
    "dataSource": "metrics-kafka",
    "timestampSpec": {
      "column": "timestamp",
      "format": "auto"
    },
    "dimensionsSpec": {
      "dimensions": [],
      "dimensionExclusions": [
        "timestamp",
        "value"
      ]
    },
    "metricsSpec": [
      {
        "name": "count",
        "type": "count"
      },
      {
        "name": "value_sum",
        "fieldName": "value",
        "type": "doubleSum"
      },
      {
        "name": "value_min",
        "fieldName": "value",
        "type": "doubleMin"
      },
      {
        "name": "value_max",
        "fieldName": "value",
        "type": "doubleMax"
      }
    ],
    "granularitySpec": {
      "type": "uniform",
      "segmentGranularity": "HOUR",
      "queryGranularity": "NONE"
    }
  },
  "ioConfig": {
    "topic": "metrics",
    "inputFormat": {
      "type": "json"
    },
    "consumerProperties": {
      "bootstrap.servers": "localhost:9092"
    },
    "taskCount": 1,
    "replicas": 1,
    "taskDuration": "PT1H"
  },
  "tuningConfig": {
    "type": "kafka",
    "maxRowsPerSegment": 5000000
  }
}
""")


def test_the_documents_supervisor_spec_parses_as_it_stands() -> None:
    spec = parse_supervisor_spec(SAMPLE)
    assert (spec.type, spec.datasource) == ("kafka", "metrics-kafka")
    assert [m.name for m in spec.spec.dataSchema.metricsSpec] == ["count", "value_sum", "value_min", "value_max"]
    assert parse_supervisor_spec(nested(SAMPLE)) == spec
    assert options_without_effect(spec.canonical(), supervised=True) == []


# Path → a value; the documents' tables, row by row.
SUPERVISOR: dict[str, Any] = {
    "ioConfig/topic": "t",
    "ioConfig/topicPattern": "t-.*",
    "ioConfig/inputFormat": {"type": "csv", "columns": ["timestamp", "value"]},
    "ioConfig/consumerProperties": {"bootstrap.servers": "a:9092,b:9092"},
    "ioConfig/pollTimeout": 200,
    "ioConfig/replicas": 2,
    "ioConfig/taskCount": 3,
    "ioConfig/taskDuration": "PT30M",
    "ioConfig/startDelay": "PT10S",
    "ioConfig/stopTaskCount": 1,
    "ioConfig/period": "PT1M",
    "ioConfig/useEarliestOffset": True,
    "ioConfig/completionTimeout": "PT45M",
    "ioConfig/lateMessageRejectionStartDateTime": "2016-01-01T11:00Z",
    "ioConfig/lateMessageRejectionPeriod": "PT1H",
    "ioConfig/earlyMessageRejectionPeriod": "PT1H",
    "ioConfig/idleConfig": {"enabled": True, "inactiveAfterMillis": 600_000},
    "ioConfig/headerBasedFilterConfig": {"filter": {"type": "in", "dimension": "h", "values": ["x"]}},
    "ioConfig/autoScalerConfig/lagAggregate": "MAX",
    "tuningConfig/type": "kafka",
    "tuningConfig/maxRowsInMemory": 500_000,
    "tuningConfig/maxBytesInMemory": 100_000_000,
    "tuningConfig/maxRowsPerSegment": 1_000_000,
    "tuningConfig/maxTotalRows": 20_000_000,
    "tuningConfig/intermediatePersistPeriod": "PT5M",
    "tuningConfig/maxPendingPersists": 1,
    "tuningConfig/indexSpec": {},
    "tuningConfig/indexSpecForIntermediatePersists": {"dimensionCompression": "uncompressed"},
    "tuningConfig/reportParseExceptions": True,
    "tuningConfig/resetOffsetAutomatically": True,
    "tuningConfig/intermediateHandoffPeriod": "PT1M",
    "tuningConfig/logParseExceptions": True,
    "tuningConfig/maxParseExceptions": 2_147_483_647,
    "tuningConfig/maxSavedParseExceptions": 0,
    "tuningConfig/indexSpec/dimensionCompression": "LZ4",
    "tuningConfig/indexSpec/metricCompression": "none",
    "tuningConfig/indexSpec/longEncoding": "auto",
}
# The same, of those that do nothing here.
UNUSED: dict[str, Any] = {
    "tuningConfig/handoffConditionTimeout": 0,
    "tuningConfig/workerThreads": 10,
    "tuningConfig/chatThreads": 10,
    "tuningConfig/chatRetries": 8,
    "tuningConfig/httpTimeout": "PT10S",
    "tuningConfig/shutdownTimeout": "PT80S",
    "tuningConfig/offsetFetchPeriod": "PT5S",
    "tuningConfig/segmentWriteOutMediumFactory": {"type": "tmpFile"},
    "tuningConfig/appendableIndexSpec": {"type": "onheap"},
    "tuningConfig/skipBytesInMemoryOverheadCheck": True,
    "tuningConfig/skipSequenceNumberAvailabilityCheck": True,
    "tuningConfig/repartitionTransitionDuration": "PT2M",
    "tuningConfig/numPersistThreads": 2,
    "tuningConfig/maxColumnsToMerge": 100,
    "tuningConfig/basePersistDirectory": "/tmp/persist",
    "tuningConfig/buildV9Directly": True,
    "ioConfig/serverPriorityToReplicas": {"0": 1},
    "ioConfig/emitTimeLagMetrics": True,
    "ioConfig/autoScalerConfig/stopTaskCountRatio": 0.5,
    "ioConfig/headerBasedFilterConfig/stringDecodingCacheSize": 100,
    "dataSchema/projections": [{"name": "daily"}],
    "tuningConfig/indexSpec/bitmap": {"type": "roaring", "compressRunOnSerialization": True},
}
# Druid's, which would change what is read or stored, and are not built.
REFUSED: dict[str, Any] = {
    "ioConfig/configOverrides": {"type": "properties"},
    "ioConfig/autoScalerConfig/autoScalerStrategy": "costBased",
    "tuningConfig/appendableIndexSpec/preserveExistingMetrics": True,
}
TASK: dict[str, Any] = {
    "ioConfig/topic": "t",
    "ioConfig/groupId": "g",
    "ioConfig/consumerProperties": {"bootstrap.servers": "a:9092"},
    "ioConfig/inputFormat": {"type": "json"},
    "ioConfig/pollTimeout": 1000,
    "tuningConfig/type": "KafkaTuningConfig",
    "tuningConfig/maxRowsPerSegment": 1_000_000,
}


# What a spec with this option does not have, or has to have.
_OF_PATTERNS: dict[str, list[tuple[str, Any]]] = {
    "ioConfig/topicPattern": [("ioConfig/topic", None)],
    "ioConfig/stopTaskCount": [("ioConfig/topic", None), ("ioConfig/topicPattern", "metrics.*")],
}


def test_every_option_of_a_supervisor_is_taken_and_has_an_effect_or_is_named() -> None:
    named = {path: _named_as_without_effect(path) for path in [*SUPERVISOR, *UNUSED]}
    wanted = {path: [path.replace("/", ".")] if path in UNUSED else [] for path in named}
    assert {path: found for path, found in named.items() if found != wanted[path]} == {}


def _named_as_without_effect(path: str) -> list[str]:
    """The options that a spec with this one names as those without effect; its fault, if it has one."""
    parent: list[tuple[str, Any]] = [
        (p, v) for p, v in SUPERVISOR.items() if path.startswith(f"{p}/") and isinstance(v, dict)
    ]
    parent += _OF_PATTERNS.get(path, [])
    document = changed(*parent, (path, {**SUPERVISOR, **UNUSED}[path]), of=SAMPLE)
    try:
        named = options_without_effect(parse_supervisor_spec(document).canonical(), supervised=True)
    except SpecError as error:
        return [f"refused: {error}"]
    return [text.partition(":")[0] for text in named]


@pytest.mark.parametrize("path", list(REFUSED))
def test_what_is_not_built_is_refused_by_name(path: str) -> None:
    on: dict[str, Any] = {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 2}
    parts: list[tuple[str, Any]] = [("ioConfig/autoScalerConfig", on)] if "autoScaler" in path else []
    parts += [("tuningConfig/appendableIndexSpec", {"type": "onheap"})] if "appendable" in path else []
    with pytest.raises(SpecError) as caught:
        parse_supervisor_spec(changed(*parts, (path, REFUSED[path]), of=SAMPLE))
    assert [issue.path for issue in caught.value.issues] == [path.replace("/", ".")]


def test_the_page_about_druid_says_of_each_field_what_becomes_of_it() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("<!-- fields: begin -->")[2]
    lines = table.partition("<!-- fields: end -->")[0].strip().splitlines()[2:]
    verdicts = {"same": SUPERVISOR, "without effect": UNUSED, "refused": REFUSED}
    expected = [f"| `{path.replace('/', '.')}` | {v} |" for v, paths in verdicts.items() for path in paths]
    assert lines == sorted(expected)


def test_all_options_of_a_supervisor_together() -> None:
    """But for one of each two that exclude each other."""
    options = {**SUPERVISOR, **UNUSED}
    del options["ioConfig/lateMessageRejectionStartDateTime"], options["ioConfig/topicPattern"]
    del options["ioConfig/stopTaskCount"]  # of a pattern alone
    spec = parse_supervisor_spec(changed(*options.items(), of=SAMPLE))
    assert len(options_without_effect(spec.canonical(), supervised=True)) == len(UNUSED)


@pytest.mark.parametrize("path", list(TASK))
def test_every_option_of_a_share_groups_task_is_taken(path: str) -> None:
    spec = parse_task_spec(changed((path, TASK[path]), of=SEED))
    assert options_without_effect(spec.canonical(), supervised=False) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("handoffConditionTimeout", -1, "must be 0 or more"),
        ("workerThreads", 0, "must be 1 or more"),
        ("chatThreads", "many", "must be a whole number"),
        ("chatRetries", -1, "must be 0 or more"),
        ("httpTimeout", "PT0S", "must be more than 0 seconds"),
        ("shutdownTimeout", "80", "must be a period in ISO 8601"),
        ("offsetFetchPeriod", "PT4S", "must be 5 seconds or more"),
        ("segmentWriteOutMediumFactory", {}, "required field is missing"),
        ("segmentWriteOutMediumFactory", {"type": "disk"}, "tmpFile"),
    ],
)
def test_what_does_nothing_has_druids_bounds_all_the_same(name: str, value: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse_supervisor_spec(changed((f"tuningConfig/{name}", value), of=SAMPLE))
    [issue] = caught.value.issues
    assert issue.path.startswith(f"tuningConfig.{name}")
