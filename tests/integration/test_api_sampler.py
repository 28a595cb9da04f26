"""The sampler over REST, with its real process: both forms of the answer, rights and limits."""

from __future__ import annotations

import base64
from contextlib import ExitStack
from typing import Any

import pytest
from django.test import Client

from controlplane.datasources import sampling
from controlplane.datasources.models import Datasource
from tests.support.broker import Broker
from tests.support.django_cast import Cast, spec_for
from tests.support.records import numbered
from tests.support.sampler import PATHS, ask, pasted, sample

TIMED = {"timestampSpec": {"column": "t"}, "dimensionsSpec": {"useSchemaDiscovery": True}}
ROLLUP = {
    **TIMED,
    "dimensionsSpec": {"dimensions": ["d"]},
    "metricsSpec": [{"type": "longSum", "name": "sum", "fieldName": "v"}],
    "granularitySpec": {"rollup": True},
}
MIXED = (
    '{"t": 1000, "d": "a", "v": 1}',
    '{"t": 1000, "d": "a", "v": 2}',
    "no",
    '{"t": 5000, "d": "b", "v": 3, "x": [1]}',
)


def test_our_own_answer(owner: Client) -> None:
    found = sample(owner, pasted(*MIXED, schema=ROLLUP))
    assert found["outcomes"] == {"stored": 3, "unparseable": 1}
    assert found["stopped_by"] == ""
    assert found["columns"] == [
        {"name": "__time", "type": "timestamp"},
        {"name": "d", "type": "string"},
        {"name": "sum", "type": "long"},
    ]
    assert {"name": "x", "type": "json"} in found["fields"]
    assert found["records"][2] == {
        "partition": None,
        "offset": None,
        "timestamp": None,
        "key_text": None,
        "key_base64": None,
        "payload_text": "no",
        "payload_base64": None,
        "payload_size": 2,
        "outcome": "unparseable",
        "error": found["records"][2]["error"],
        "fields": None,
        "row": None,
        "further_rows": [],
    }
    assert found["records"][3]["fields"] == {"t": 5000, "d": "b", "v": 3, "x": [1]}
    assert found["records"][3]["row"] == {"__time": "1970-01-01T00:00:05.000Z", "d": "b", "sum": 3}
    assert sorted(found["rollup"], key=lambda m: m["records"]) == [
        {"row": {"__time": "1970-01-01T00:00:01.000Z", "d": "a", "sum": 3}, "records": [0, 1]},
        {"row": {"__time": "1970-01-01T00:00:05.000Z", "d": "b", "sum": 3}, "records": [3]},
    ]


def test_druid_s_answer(owner: Client) -> None:
    found = sample(owner, pasted(*MIXED, schema=ROLLUP), PATHS[1])
    error = found["data"][1]["error"]
    string = {"type": "string", "name": "d", "multiValueHandling": "SORTED_ARRAY", "createBitmapIndex": True}
    assert found == {
        "numRowsRead": 4,
        "numRowsIndexed": 3,
        "logicalDimensions": [string],
        "physicalDimensions": [string],
        "logicalSegmentSchema": [
            {"name": "__time", "type": "LONG"},
            {"name": "d", "type": "STRING"},
            {"name": "sum", "type": "LONG"},
        ],
        "data": [
            {"input": {"t": 1000, "d": "a", "v": 1}, "parsed": {"__time": 1000, "d": "a", "sum": 3}},
            {"unparseable": True, "error": error},
            {"input": {"t": 5000, "d": "b", "v": 3, "x": [1]}, "parsed": {"__time": 5000, "d": "b", "sum": 3}},
        ],
    }
    assert error.startswith("not JSON")


def test_a_number_that_is_none_is_unparseable_beside_its_row_for_druid_s_clients(owner: Client) -> None:
    found = sample(
        owner, pasted('{"t": 1000, "d": "a", "v": "x"}', '{"t": 2000, "d": "b", "v": 1}', schema=ROLLUP), PATHS[1]
    )
    bad, good = found["data"]
    assert (bad["unparseable"], bad["parsed"]) == (True, {"__time": 1000, "d": "a"})
    assert bad["error"] == "field 'v' is not a whole number"
    assert "unparseable" not in good and "error" not in good
    assert (found["numRowsRead"], found["numRowsIndexed"]) == (2, 1)


def test_a_sketch_is_base64_for_druid_s_clients_and_an_estimate_for_ours(owner: Client) -> None:
    """The base64 is what Druid's own sampler gives for this value."""
    metrics = [{"type": "HLLSketchBuild", "name": "users", "fieldName": "d"}]
    schema = {**ROLLUP, "dimensionsSpec": {"dimensions": ["v"]}, "metricsSpec": metrics}
    body = pasted('{"t": 0, "d": "a"}', schema=schema)
    ours = sample(owner, body)
    assert ours["columns"][-1] == {"name": "users", "type": "COMPLEX<HLLSketch>"}
    assert ours["records"][0]["row"]["users"] == {"sketch": "AgEHDAMIAQDhUv8P", "estimate": 1.0}
    druids = sample(owner, body, PATHS[1])
    assert druids["data"][0]["parsed"]["users"] == "AgEHDAMIAQDhUv8P"
    assert druids["logicalSegmentSchema"][-1] == {"name": "users", "type": "COMPLEX<HLLSketch>"}


def test_druid_s_answer_to_what_its_console_asks_first(owner: Client) -> None:
    """No time yet, and all is discovered: a row of each record, at the time 0."""
    nowhere = {"column": "!!!_no_such_column_!!!", "missingValue": "1970-01-01T00:00:00Z"}
    schema = {
        "dataSource": "sample",
        "timestampSpec": nowhere,
        "dimensionsSpec": {},
        "granularitySpec": {"rollup": False},
    }
    body = pasted('{"a": 1, "b": 2.5, "c": {"d": 1}, "e": true}', schema=schema)
    body["type"] = body["spec"]["type"] = body["spec"]["ioConfig"]["type"] = "index"
    body["samplerConfig"] = {"numRows": 500, "timeoutMs": 15000}
    found = sample(owner, body, f"{PATHS[1]}?for=parser")
    assert [e["parsed"] for e in found["data"]] == [{"__time": 0, "a": "1", "b": "2.5", "e": "true"}]
    assert [(d["name"], d["type"]) for d in found["logicalDimensions"]] == [
        ("a", "string"),
        ("b", "string"),
        ("e", "string"),
    ]
    assert {d["type"] for d in found["physicalDimensions"]} == {"string"}
    schema["dimensionsSpec"] = {"useSchemaDiscovery": True}
    found = sample(owner, body, f"{PATHS[1]}?for=parser")
    assert [e["parsed"] for e in found["data"]] == [{"__time": 0, "a": 1, "b": 2.5, "c": {"d": 1}, "e": True}]
    assert {d["type"] for d in found["physicalDimensions"]} == {"auto"}
    assert found["logicalSegmentSchema"][3] == {"name": "c", "type": "COMPLEX<json>"}


def test_records_without_a_format_are_raw(owner: Client) -> None:
    body = pasted("a", "b", inputFormat=None)
    assert sample(owner, body)["outcomes"] == {"raw": 2}
    data = sample(owner, body, PATHS[1])["data"]
    assert [(e["input"], e["unparseable"]) for e in data] == [({"raw": "a"}, True), ({"raw": "b"}, True)]


def test_bytes_that_are_no_text_are_in_base64(owner: Client) -> None:
    long = "é" * 10_000  # its beginning ends within a character
    texts = [base64.b64encode(data).decode() for data in (b"\xff\x00", f"x{long}".encode())]
    source = {"type": "inline", "data": texts, "encoding": "base64"}
    first, second = sample(owner, pasted(inputSource=source, inputFormat=None))["records"]
    assert (first["payload_text"], first["payload_base64"], first["payload_size"]) == (None, texts[0], 2)
    assert second["payload_text"].startswith("xéé") and len(second["payload_text"]) < len(long)
    assert (second["payload_base64"], second["payload_size"]) == (None, 20_001)


def test_an_operator_may_a_viewer_may_not(clients: dict[str, Client], cast: Cast) -> None:
    """Row 5 of the security checklist. Where no datasource is named, too: it reads a Kafka as a task would."""
    unnamed, new = pasted("{}"), pasted("{}", schema={"dataSource": "brand-new"})
    for body in (unnamed, new):
        expected = {"owner": 200, "operator": 200, "viewer": 403, "outsider": 200, "superuser": 200, "anonymous": 401}
        assert {role: ask(client, body).status_code for role, client in clients.items()} == expected
    cast.users["outsider"].memberships.all().delete()
    assert ask(clients["outsider"], unnamed).status_code == 403


KAFKA = "/ioConfig/consumerProperties"
FAULTS = [
    ({"dataSchema": {"dataSource": "a/b"}}, "/dataSchema/dataSource"),
    (
        {"ioConfig": {"topic": "t", "consumerProperties": {"bootstrap.servers": "k", "plugin.library.paths": "x"}}},
        f"{KAFKA}/plugin.library.paths",
    ),
    (
        {"ioConfig": {"topic": "t", "consumerProperties": {"bootstrap.servers": "k", "sasl.jaas.config": "x"}}},
        f"{KAFKA}/sasl.jaas.config",
    ),
    ({"ioConfig": {"topic": "t", "consumerProperties": {"sasl.oauthbearer.token.endpoint.url": "file:///x"}}}, KAFKA),
    ({"ioConfig": {"topic": "../t", "consumerProperties": {"bootstrap.servers": "k"}}}, "/ioConfig/topic"),
]


@pytest.mark.parametrize(("spec", "pointer"), FAULTS)
def test_what_a_spec_may_not_say_a_sample_may_not_either(owner: Client, spec: Any, pointer: str) -> None:
    """Row 5 of the security checklist: the sampler checks what creating a supervisor checks."""
    answer = ask(owner, {"type": "kafka", "spec": spec})
    assert answer.status_code == 400
    pointers = [e["pointer"] for e in answer.json()["errors"]]
    assert f"/spec{pointer}" in pointers
    druid = ask(owner, {"type": "kafka", "spec": spec}, PATHS[1])
    assert druid.status_code == 400
    assert [e["pointer"] for e in druid.json()["context"]["errors"]] == pointers


@pytest.mark.parametrize(
    "config", [{"numRows": 0}, {"numRows": 1001}, {"timeoutMs": 15_001}, {"timeoutMs": 1}, {"x": 1}]
)
def test_more_than_the_limits_is_refused(owner: Client, config: Any) -> None:
    """Row 5 of the security checklist: rows, bytes and time have limits."""
    answer = ask(owner, {**pasted("{}"), "samplerConfig": config})
    assert answer.status_code == 400
    assert [e["pointer"] for e in answer.json()["errors"]] == [f"/samplerConfig/{next(iter(config))}"]


def test_what_the_decoder_can_not_use_is_bad_input_with_its_place(owner: Client) -> None:
    transform = {"type": "expression", "name": "x", "expression": "nonsense("}
    answer = ask(owner, pasted("{}", schema={"transformSpec": {"transforms": [transform]}}))
    assert answer.status_code == 400
    [fault] = answer.json()["errors"]
    place = (
        "/spec/dataSchema/transformSpec/transforms/0/expression",
        "spec.dataSchema.transformSpec.transforms[0].expression",
    )
    assert (fault["pointer"], fault["path"]) == place
    assert "'x'" in fault["detail"]
    flat = {
        "type": "inline",
        **pasted("{}", inputFormat={"type": "protobuf", "protoBytesDecoder": {"type": "file", "descriptor": "x"}})[
            "spec"
        ],
    }
    assert [e["pointer"] for e in ask(owner, flat).json()["errors"]] == ["/ioConfig/inputFormat"]


def test_only_so_many_at_once(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 5 of the security checklist: a few samples at once, no more."""
    monkeypatch.setattr(sampling, "WAIT_S", 0.05)
    with ExitStack() as taken:
        for number in range(sampling.MAX_CONCURRENT):
            taken.enter_context(sampling._slots.place(f"somebody {number}", 1))
        assert ask(owner, pasted("{}")).status_code == 503
    assert ask(owner, pasted("{}")).status_code == 200


# From a topic


def test_a_topic_s_records(owner: Client, broker: Broker) -> None:
    topic = broker.topic("sampled")
    broker.produce(topic, [*numbered(0, 200), b"no record"])
    before = {g.group_id for g in broker.admin.list_consumer_groups().result().valid}
    spec = broker.spec(topic)
    found = sample(owner, {**spec, "samplerConfig": {"numRows": 1000}})
    assert found["outcomes"] == {"stored": 200, "unparseable": 1}
    assert sorted(r["row"]["n"] for r in found["records"] if r["row"]) == list(range(200))
    assert len({(r["partition"], r["offset"]) for r in found["records"] if r["timestamp"]}) == 201
    assert {c["name"]: c["type"] for c in found["columns"]} == {
        "__time": "timestamp",
        "n": "long",
        "value": "long",
        "category": "string",
    }
    last = {**spec, "ioConfig": {**spec["ioConfig"], "useEarliestOffset": False}, "samplerConfig": {"numRows": 4}}
    assert len(sample(owner, last)["records"]) == 4
    kafka = broker.kafka_spec(topic)
    druid = sample(owner, {"type": "kafka", "spec": {"ioConfig": kafka["ioConfig"]}}, PATHS[1])
    assert (druid["numRowsRead"], druid["numRowsIndexed"]) == (200, 200 - sum("error" in e for e in druid["data"]))
    assert {g.group_id for g in broker.admin.list_consumer_groups().result().valid} <= before
    assert not Datasource.objects.filter(name=topic).exists()


def test_an_unknown_topic_is_bad_input_at_its_place(owner: Client, broker: Broker) -> None:
    answer = ask(owner, broker.spec("not-there"))
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert (error["pointer"], error["path"]) == ("/ioConfig/topic", "ioConfig.topic")
    assert "'not-there'" in error["detail"]


def test_the_document_s_whole_spec_is_a_request(owner: Client) -> None:
    spec = spec_for("flights")
    spec["ioConfig"]["inputSource"] = {"type": "inline", "data": '{"__time": "2025-06-01", "a": 1}'}
    assert sample(owner, spec)["records"][0]["row"] == {"__time": "2025-06-01T00:00:00.000Z", "a": 1}
