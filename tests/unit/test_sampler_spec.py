"""A sampler's request: a spec as far as it is written, what stands in for the rest, and every fault at its place."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ingestion.specs.errors import SpecError
from ingestion.specs.messages.sampler_spec import SamplerSpec, parse_sampler_spec
from ingestion.specs.messages.sampling import SampleOrder
from tests.support.django_cast import spec_for

KAFKA = {"topic": "t", "consumerProperties": {"bootstrap.servers": "kafka:9092"}}


def pasted(data: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"inputSource": {"type": "inline", "data": data, **more}}


def parsed(kind: str = "inline", schema: Any = None, io_config: Any = None, **more: Any) -> SamplerSpec:
    spec = {"dataSchema": schema, "ioConfig": pasted() if io_config is None else io_config}
    return parse_sampler_spec({"type": kind, "spec": {k: v for k, v in spec.items() if v is not None}, **more})


def faults(document: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        parse_sampler_spec(document)
    return {issue.pointer: issue.message for issue in caught.value.issues}


def test_next_to_nothing_is_enough() -> None:
    spec = parsed()
    assert (spec.order.records, spec.order.formatted, spec.order.timed, spec.datasource) == (
        [b"{}"],
        False,
        False,
        None,
    )
    assert (spec.order.rows, spec.order.timeout_ms) == (200, 5000)


def test_what_is_written_is_taken() -> None:
    schema = {"dataSource": "d", "timestampSpec": {"column": "t"}, "granularitySpec": {"rollup": True}}
    config = {"numRows": 7, "timeoutMs": 900}
    spec = parsed("kafka", schema, {**KAFKA, "inputFormat": {"type": "csv", "columns": ["a"]}}, samplerConfig=config)
    order = spec.order
    assert (spec.datasource, order.timed, order.formatted, order.records) == ("d", True, True, None)
    assert (order.rows, order.timeout_ms, order.io_config.topic) == (7, 900, "t")
    assert order.data_schema.granularitySpec.rollup
    assert order.io_config.inputFormat.type == "csv"


def test_a_transform_may_make_the_time() -> None:
    made = {"transforms": [{"type": "expression", "name": "__time", "expression": "a"}]}
    assert parsed(schema={"transformSpec": made}).order.timed


@pytest.mark.parametrize(
    ("kind", "earliest"), [("kafka", False), ("index_kafka", False), ("index_kafka_share_group", True)]
)
def test_which_end_of_the_topic_is_the_spec_s_default(kind: str, earliest: bool) -> None:
    assert parsed(kind, io_config=KAFKA).order.io_config.useEarliestOffset is earliest
    given = parsed(kind, io_config={**KAFKA, "useEarliestOffset": not earliest})
    assert given.order.io_config.useEarliestOffset is not earliest


def test_a_whole_spec_is_a_request_in_either_form() -> None:
    flat = spec_for("flights")
    nested = {"type": flat.pop("type"), "spec": flat}
    for document in ({**flat, "type": nested["type"]}, nested, {**nested, "suspended": True, "id": "x", "context": {}}):
        spec = parse_sampler_spec(document)
        assert spec.datasource == "flights"
        assert spec.order.timed and spec.order.formatted


def test_the_older_form_with_a_parser_is_taken() -> None:
    parse_spec = {"format": "csv", "columns": ["t", "a"], "timestampSpec": {"column": "t"}, "dimensionsSpec": {}}
    schema = {"parser": {"type": "string", "parseSpec": parse_spec}}
    order = parsed(schema=schema).order
    assert order.formatted and order.io_config.inputFormat.type == "csv"
    # Its timestampSpec is as good as one that stands where it stands today.
    assert order.timed and order.data_schema.timestampSpec.column == "t"


@pytest.mark.parametrize(
    "kind", ["index", "index_parallel", "kafka", "index_kafka", "index_kafka_share_group", "inline"]
)
def test_pasted_records_are_taken_with_any_type(kind: str) -> None:
    assert parsed(kind).order.records == [b"{}"]


@pytest.mark.parametrize(
    ("data", "records"),
    [
        ("a\nb\n", [b"a", b"b"]),
        ("a\r\n\n  \nb", [b"a", b"b"]),
        ("a\u2028b", ["a\u2028b".encode()]),
        (["a\nb", ""], [b"a\nb", b""]),
        ("", []),
        ([], []),
    ],
)
def test_a_line_is_a_record_and_a_list_has_them_as_they_are(data: Any, records: list[bytes]) -> None:
    assert parsed(io_config=pasted(data)).order.records == records


def test_records_that_are_no_text_are_pasted_in_base64() -> None:
    text = base64.b64encode(b"\x00\xff").decode()
    assert parsed(io_config=pasted(f"{text}\n", encoding="base64")).order.records == [b"\x00\xff"]
    wrong = {"type": "inline", "spec": {"ioConfig": pasted([text, "?"], encoding="base64")}}
    assert faults(wrong) == {"/spec/ioConfig/inputSource": "record 2 of data is not base64"}


def test_no_more_are_taken_than_were_asked_for() -> None:
    order = parsed(io_config=pasted("\n".join("abcdef")), samplerConfig={"numRows": 2}).order
    assert order.records == [b"a", b"b"]


def test_what_druid_s_console_writes_besides_is_not_looked_at() -> None:
    io_config: dict[str, Any] = {
        **KAFKA,
        "type": "kafka",
        "taskDuration": "PT1H",
        "completionTimeout": "PT2H",
        "inputFormat": None,
    }
    document: dict[str, Any] = {
        "type": "kafka",
        "spec": {"type": "kafka", "ioConfig": io_config, "tuningConfig": {"type": "kafka"}},
    }
    assert not parse_sampler_spec(document).order.formatted
    io_config = {**pasted(), "type": "index", "appendToExisting": True}
    document = {
        "type": "index",
        "spec": {"type": "index", "ioConfig": io_config, "tuningConfig": {"type": "index", "x": 1}},
    }
    assert parse_sampler_spec(document).order.records == [b"{}"]


@pytest.mark.parametrize("document", [None, [], "x", 1])
def test_what_is_no_object_is_refused(document: Any) -> None:
    assert faults(document) == {"": "must be a JSON object"}


@pytest.mark.parametrize("kind", ["kinesis", "", 1, [], {}])
def test_other_types_are_refused(kind: Any) -> None:
    assert "must be one of index_kafka_share_group, kafka" in faults({"type": kind, "spec": {}})["/type"]


def test_every_fault_is_told_where_it_was_written() -> None:
    document = {
        "type": "kafka",
        "spec": {
            "dataSchema": {"dataSource": "../x", "timestampSpec": {"colum": "t"}},
            "ioConfig": {"consumerProperties": {"sasl.jaas.config": "x"}, "inputFormat": {"type": "odd"}},
        },
        "samplerConfig": {"numRows": 1001, "timeoutMs": 99, "x": 1},
    }
    assert set(faults(document)) == {
        "/spec/dataSchema/dataSource",
        "/spec/dataSchema/timestampSpec/colum",
        "/spec/ioConfig/topic",
        "/spec/ioConfig/consumerProperties",
        "/spec/ioConfig/consumerProperties/sasl.jaas.config",
        "/spec/ioConfig/inputFormat/type",
        "/samplerConfig/numRows",
        "/samplerConfig/timeoutMs",
        "/samplerConfig/x",
    }
    flat = {"type": "inline", "ioConfig": {}, "surprise": 1}
    assert set(faults(flat)) == {"/ioConfig/inputSource", "/surprise"}


@pytest.mark.parametrize("kind", ["index_kafka_share_group", "kafka", "index_kafka"])
def test_a_stream_s_spec_is_read_strictly(kind: str) -> None:
    document = {"type": kind, "spec": {"ioConfig": {**KAFKA, "topik": "t"}, "tuningConfig": {"x": 1}}}
    assert set(faults(document)) == {"/spec/ioConfig/topik", "/spec/tuningConfig/x"}


@pytest.mark.parametrize(
    ("part", "value"), [("spec", []), ("spec", None), ("dataSchema", []), ("ioConfig", 1), ("samplerConfig", [])]
)
def test_parts_that_are_no_objects_are_refused(part: str, value: Any) -> None:
    document: dict[str, Any] = {"type": "inline", "ioConfig": pasted(), part: value}
    assert any(pointer.startswith(f"/{part}") for pointer in faults(document))


def test_an_order_survives_its_way_to_the_process() -> None:
    schema = {"dataSource": "d", "granularitySpec": {"segmentGranularity": {"type": "period", "period": "P1D"}}}
    order = parsed(schema=schema, io_config={**pasted("\u00e9"), "lateMessageRejectionPeriod": "PT1H"}).order
    assert SampleOrder.model_validate_json(order.model_dump_json()) == order
