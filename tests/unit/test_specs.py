"""Ingestion specs: the document's own example, every fault at once by its path, granularities, filters."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.specs.errors import SpecError
from ingestion.specs.kafka.properties import librdkafka_properties
from ingestion.specs.schema.data_schema import DataSchema, TimestampSpec
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.tasks.ingestion_spec import (
    SupervisorSpec,
    TaskSpec,
    TuningConfig,
    parse_supervisor_spec,
    parse_task_spec,
)

# The task spec of the document "Kafka share group ingestion", as it stands there.
SEED = json.loads("""
{
  "type": "index_kafka_share_group",
  "dataSchema": {
    "dataSource": "my_datasource",
    "timestampSpec": {
      "column": "__time",
      "format": "auto"
    },
    "dimensionsSpec": {
      "useSchemaDiscovery": true
    },
    "granularitySpec": {
      "segmentGranularity": "DAY",
      "queryGranularity": "NONE"
    }
  },
  "ioConfig": {
    "topic": "my_topic",
    "groupId": "druid-share-group",
    "consumerProperties": {
      "bootstrap.servers": "kafka-broker:9092"
    },
    "inputFormat": {
      "type": "json"
    },
    "pollTimeout": 2000
  },
  "tuningConfig": {
    "type": "KafkaTuningConfig",
    "maxRowsPerSegment": 5000000
  }
}
""")
PARTS = ("dataSchema", "ioConfig", "tuningConfig")


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    outer = {k: v for k, v in flat.items() if k not in PARTS}
    return {**outer, "spec": {k: flat[k] for k in PARTS if k in flat}}


def changed(*changes: tuple[str, Any], of: dict[str, Any] = SEED) -> dict[str, Any]:
    """The seed with values set at dotted paths; ``...`` removes one."""
    spec: dict[str, Any] = copy.deepcopy(of)
    for path, value in changes:
        *above, last = path.split("/")
        place = spec
        for part in above:
            place = place.setdefault(part, {})
        if value is ...:
            del place[last]
        else:
            place[last] = copy.deepcopy(value)
    return spec


def faults(document: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        parse_task_spec(document)
    return {issue.path: issue.message for issue in caught.value.issues}


def test_the_documents_spec_parses_as_it_stands() -> None:
    task = parse_task_spec(SEED)
    schema, io_config = task.spec.dataSchema, task.spec.ioConfig
    assert isinstance(task, TaskSpec)
    assert (task.type, task.datasource) == ("index_kafka_share_group", "my_datasource")
    assert (schema.timestampSpec.column, schema.timestampSpec.format) == ("__time", "auto")
    assert schema.dimensionsSpec.discovers
    assert schema.granularitySpec.segmentGranularity is Granularity.DAY
    assert schema.granularitySpec.queryGranularity is Granularity.NONE
    assert (io_config.topic, io_config.group) == ("my_topic", "druid-share-group")
    assert io_config.consumerProperties["bootstrap.servers"] == "kafka-broker:9092"
    assert io_config.pollTimeout == 2000
    assert task.spec.tuningConfig.type == "KafkaTuningConfig"
    assert task.spec.tuningConfig.maxRowsPerSegment == 5_000_000


def test_defaults_of_the_document() -> None:
    task = parse_task_spec(changed(("ioConfig/pollTimeout", ...), ("tuningConfig", ...)))
    assert task.spec.ioConfig.pollTimeout == 2000
    assert task.spec.ioConfig.useEarliestOffset
    assert task.spec.tuningConfig == TuningConfig()


def test_when_rows_are_persisted_and_handed_off() -> None:
    """Druid's defaults; that of the handoff period, never, is as none: an indexer hands off as it comes."""
    tuning = TuningConfig()
    assert (tuning.maxRowsInMemory, tuning.maxTotalRows, tuning.maxPendingPersists) == (1_000_000, None, 0)
    assert tuning.intermediatePersistPeriod == timedelta(minutes=10)
    assert tuning.indexSpecForIntermediatePersists is None
    never = changed(("tuningConfig/intermediateHandoffPeriod", "P2147483647D"))
    assert parse_task_spec(never).spec.tuningConfig.intermediateHandoffPeriod is None
    task = parse_task_spec(changed(("tuningConfig/intermediateHandoffPeriod", "P2147483646D")))
    assert task.spec.tuningConfig.intermediateHandoffPeriod == timedelta(days=36_525)
    assert parse_task_spec(task.canonical()) == task


KAFKA = (("type", "kafka"), ("ioConfig/groupId", ...))
RUN_LOOP = ("startDelay", "period", "taskDuration", "completionTimeout")


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        ((), (timedelta(), timedelta(seconds=30), None, timedelta(seconds=90))),
        (KAFKA, (timedelta(seconds=5), timedelta(seconds=30), timedelta(hours=1), timedelta(minutes=30))),
    ],
)
def test_what_the_run_loop_goes_by(kind: tuple[tuple[str, Any], ...], defaults: tuple[timedelta | None, ...]) -> None:
    """Of the type ``kafka`` as in Druid. A time that nobody lives to see is one that can be told."""
    found = parse_supervisor_spec(changed(*kind)).spec.ioConfig
    assert tuple(getattr(found, name) for name in RUN_LOOP) == defaults
    given = changed(*kind, *((f"ioConfig/{name}", "P2DT3H") for name in RUN_LOOP))
    found = parse_supervisor_spec(given).spec.ioConfig
    assert {getattr(found, name) for name in RUN_LOOP} == {timedelta(days=2, hours=3)}
    for name in RUN_LOOP:
        for wrong in ("-PT1S", "soon", *(["PT0S"] if name != "startDelay" else [])):
            with pytest.raises(SpecError, match=f"ioConfig.{name}"):
                parse_supervisor_spec(changed(*kind, (f"ioConfig/{name}", wrong)))
    far = parse_supervisor_spec(changed(*kind, ("ioConfig/startDelay", "P2000Y"), ("ioConfig/period", "P2000Y")))
    assert {far.spec.ioConfig.startDelay, far.spec.ioConfig.period} == {timedelta(days=36_525)}


def test_flat_and_nested_are_the_same() -> None:
    assert parse_task_spec(nested(SEED)) == parse_task_spec(SEED)
    supervisor = parse_supervisor_spec({**SEED, "suspended": True})
    assert isinstance(supervisor, SupervisorSpec)
    assert supervisor.suspended
    assert supervisor.spec == parse_task_spec(SEED).spec


def test_what_is_stored_parses_to_the_same() -> None:
    condition = {"type": "not", "field": {"type": "selector", "dimension": "a", "value": 1}}
    task = parse_task_spec(
        changed(
            ("dataSchema/transformSpec", {"filter": condition}),
            ("dataSchema/timestampSpec/missingValue", "2020-01-01"),
            ("ioConfig/lateMessageRejectionPeriod", "PT1H"),
            ("dataSchema/dimensionsSpec", {"dimensions": ["a", {"name": "b", "type": "long"}]}),
        )
    )
    stored = task.canonical()
    assert json.loads(json.dumps(stored)) == stored
    assert parse_task_spec(stored) == task


def test_every_fault_is_told_at_once_by_its_path() -> None:
    spec = changed(
        ("dataSchema/dataSource", "../etc"),
        ("dataSchema/timestampSpec/format", "yyyy-MM-dd b"),
        ("dataSchema/dimensionsSpec", {"dimensions": ["a", {"name": "b", "type": "int"}], "dimensionExclusion": []}),
        ("dataSchema/granularitySpec/segmentGranularity", "FORTNIGHT"),
        ("ioConfig/topic", "a topic"),
        ("ioConfig/groupId", ...),
        ("ioConfig/consumerProperties", {"sasl.jaas.config": "x"}),
        ("ioConfig/inputFormat/type", "orc"),
        ("tuningConfig/maxRowsPerSegment", 0),
        ("surprise", 1),
    )
    found = faults(spec)
    assert set(found) == {
        "dataSchema.dataSource",
        "dataSchema.timestampSpec.format",
        "dataSchema.dimensionsSpec.dimensions[1].type",
        "dataSchema.dimensionsSpec.dimensionExclusion",
        "dataSchema.granularitySpec.segmentGranularity",
        "ioConfig.topic",
        "ioConfig.groupId",
        "ioConfig.consumerProperties",
        "ioConfig.consumerProperties['sasl.jaas.config']",
        "ioConfig.inputFormat.type",
        "tuningConfig.maxRowsPerSegment",
        "surprise",
    }
    assert found["ioConfig.groupId"] == "required field is missing"
    assert found["surprise"] == "unknown field: check its spelling, or remove it"
    assert "must be one login module" in found["ioConfig.consumerProperties['sasl.jaas.config']"]
    assert "'bootstrap.servers' is required" in found["ioConfig.consumerProperties"]


def test_a_nested_spec_is_faulted_where_it_stands() -> None:
    with pytest.raises(SpecError) as caught:
        parse_task_spec(nested(changed(("ioConfig/topic", "a topic"), ("ioConfig/a~b", 1))))
    assert {(i.path, i.pointer) for i in caught.value.issues} == {
        ("spec.ioConfig.topic", "/spec/ioConfig/topic"),
        ("spec.ioConfig.a~b", "/spec/ioConfig/a~0b"),
    }
    assert "spec.ioConfig.topic: must be 1 to 249" in str(caught.value)


@pytest.mark.parametrize("document", [None, [], "text", 1, True])
def test_what_is_no_object(document: object) -> None:
    assert faults(document) == {"": "must be a JSON object"}


def test_an_empty_object_names_what_is_required() -> None:
    assert faults({}) == dict.fromkeys(["type", "dataSchema", "ioConfig"], "required field is missing")


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        (
            [("dataSchema/granularitySpec/segmentGranularity", "none")],
            "dataSchema.granularitySpec.segmentGranularity",
            "a segment per millisecond",
        ),
        (
            [("dataSchema/dimensionsSpec", {"dimensions": ["a", "a"]})],
            "dataSchema.dimensionsSpec",
            "dimensions are named twice: a",
        ),
        (
            [("dataSchema/dimensionsSpec", {"dimensions": ["a"], "dimensionExclusions": ["a"]})],
            "dataSchema.dimensionsSpec",
            "both named and excluded: a",
        ),
        (
            [("dataSchema/dimensionsSpec", {"dimensions": ["__time"]})],
            "dataSchema.dimensionsSpec.dimensions[0].name",
            "can't be a dimension",
        ),
        (
            [
                ("ioConfig/lateMessageRejectionPeriod", "PT1H"),
                ("ioConfig/lateMessageRejectionStartDateTime", "2025-06-01"),
            ],
            "ioConfig",
            "not both",
        ),
        ([("ioConfig/replicas", 2)], "ioConfig.replicas", "receive different records"),
        (
            [("ioConfig/consumerProperties/security.protocol", "TLS")],
            "ioConfig.consumerProperties['security.protocol']",
            "'security.protocol' must be one of",
        ),
        (
            [
                (
                    "dataSchema/transformSpec",
                    {"filter": {"type": "and", "fields": [{"type": "selector", "dimension": ""}]}},
                )
            ],
            "dataSchema.transformSpec.filter.fields[0].dimension",
            "at least 1 character",
        ),
        (
            [("dataSchema/transformSpec", {"filter": {"type": "javascript", "dimension": "a"}})],
            "dataSchema.transformSpec.filter.type",
            "javascript",
        ),
        ([("type", "index_parallel")], "type", "index_kafka_share_group"),
        (
            [("tuningConfig/intermediatePersistPeriod", "PT0.5S")],
            "tuningConfig.intermediatePersistPeriod",
            "one second",
        ),
        ([("tuningConfig/intermediateHandoffPeriod", "-PT1H")], "tuningConfig.intermediateHandoffPeriod", "one second"),
        ([("tuningConfig/maxPendingPersists", 101)], "tuningConfig.maxPendingPersists", "must be 100 or less"),
        ([("tuningConfig/maxTotalRows", 0)], "tuningConfig.maxTotalRows", "must be 1 or more"),
        (
            [("tuningConfig/indexSpecForIntermediatePersists", {"dimensionCompression": "snappy"})],
            "tuningConfig.indexSpecForIntermediatePersists.dimensionCompression",
            "lz4",
        ),
    ],
)
def test_single_faults(changes: list[tuple[str, Any]], path: str, message: str) -> None:
    found = faults(changed(*changes))
    assert list(found) == [path]
    assert message in found[path]


PLACES = [
    *["type", "dataSchema", "ioConfig", "tuningConfig", "dataSchema/timestampSpec", "dataSchema/dimensionsSpec"],
    *["dataSchema/granularitySpec/segmentGranularity", "ioConfig/consumerProperties", "ioConfig/idleConfig"],
    *["dataSchema/transformSpec", "ioConfig/topic", "ioConfig/taskCount", "context", "spec"],
]


@given(
    path=st.sampled_from(PLACES),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
        max_leaves=4,
    ),
)
def test_any_json_is_a_spec_or_a_spec_error(path: str, value: Any) -> None:
    with suppress(SpecError):
        parse_task_spec(changed((path, value)))


@pytest.mark.parametrize(
    ("spec", "discovers"),
    [
        ({}, True),
        ({"dimensions": ["a"]}, False),
        ({"dimensions": ["a"], "useSchemaDiscovery": True}, True),
        ({"dimensions": ["a"], "includeAllDimensions": True}, True),
        ({"dimensions": []}, True),
    ],
)
def test_when_fields_are_discovered(spec: dict[str, Any], discovers: bool) -> None:
    schema = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "t"}, "dimensionsSpec": spec})
    assert schema.dimensionsSpec.discovers is discovers


def test_times_without_a_zone_are_utc() -> None:
    spec = TimestampSpec.model_validate({"missingValue": "2025-06-01T00:00:00"})
    zoned = TimestampSpec.model_validate({"missingValue": "2025-06-01T02:00:00+02:00"})
    assert spec.missingValue == zoned.missingValue == datetime(2025, 6, 1, tzinfo=UTC)


def test_kafka_properties() -> None:
    task = parse_task_spec(
        changed(
            ("ioConfig/consumerProperties/socket.keepalive.enable", True),
            ("ioConfig/consumerProperties/request.timeout.ms", 1000),
            ("ioConfig/consumerProperties/max.poll.records", 5),
            ("ioConfig/consumerProperties/sasl.mechanism", "PLAIN"),
            ("ioConfig/consumerProperties/sasl.password", "secret"),
        )
    )
    properties = {name: str(value) for name, value in task.spec.ioConfig.consumerProperties.items()}
    assert librdkafka_properties(properties) == {
        "bootstrap.servers": "kafka-broker:9092",
        "socket.keepalive.enable": "true",
        "socket.timeout.ms": "1000",
        "max.poll.records": "5",
        "sasl.mechanisms": "PLAIN",
        "sasl.password": "secret",
    }


def of_kafka(**io_config: Any) -> dict[str, Any]:
    """The document's spec as one with stored offsets."""
    kept = {k: v for k, v in SEED["ioConfig"].items() if k in ("topic", "consumerProperties", "inputFormat")}
    return {**SEED, "type": "kafka", "ioConfig": {**kept, **io_config}}


def test_replicas_read_offset_ranges() -> None:
    assert parse_supervisor_spec(of_kafka(replicas=3)).task_spec(1).spec.ioConfig.replicas == 3


@pytest.mark.parametrize(
    ("io_config", "message"),
    [
        ({"replicas": 0}, "must be 1 or more"),
        ({"replicas": 11}, "must be 10 or less"),
        ({"replicas": 2, "assignment": "consumer_group"}, "each partition is read by one member alone"),
    ],
)
def test_replicas_that_make_no_sense(io_config: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_supervisor_spec(of_kafka(**io_config))


@pytest.mark.parametrize("inner", ["kafka", "index_kafka", None])
@pytest.mark.parametrize("read", [parse_task_spec, parse_supervisor_spec])
def test_a_kind_of_source_has_one_name_once_it_is_read(read: Any, inner: str | None) -> None:
    document = changed(("type", "index_kafka" if read is parse_task_spec else "kafka"), ("ioConfig/type", inner))
    del document["ioConfig"]["groupId"]
    assert read(document).canonical()["spec"]["ioConfig"]["type"] == "kafka"
    shared = changed(("ioConfig/type", "kafka_share_group"))
    assert read(shared).canonical()["spec"]["ioConfig"]["type"] == "index_kafka_share_group"
