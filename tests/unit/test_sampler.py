"""The sampler's process on pasted records: what it says of them, and what bounds its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.specs.messages.sampling import MAX_ANSWER_BYTES, SHOWN_BYTES, SampleAnswer
from ingestion.task.sampler.decoding import decode_records
from ingestion.task.sampler.records import Records
from ingestion.task.sampler.values import DEEPEST, json_value
from tests.support.pasted import JSON, TIMED, TYPED, columns, fields, only, sample


def test_without_a_format_records_stay_as_they_are() -> None:
    answer = sample(b"anything", b"\xff", input_format=None)
    assert [(r.outcome, r.fields, r.row) for r in answer.records] == [("raw", None, None)] * 2
    assert answer.records[1].payload is not None
    assert answer.records[1].payload.start == b"\xff"
    assert (answer.fields, answer.columns, answer.rollup) == ([], [], None)


def test_with_a_format_alone_every_field_is_a_column_and_nothing_is_a_time() -> None:
    records = (b'{"timestamp": "2025-06-01", "n": 1, "x": {"y": [1]}}', b'{"n": 2.5, "b": true}')
    found = {"timestamp": "string", "n": "double", "x": "json", "b": "boolean"}
    strings = sample(*records)
    assert (fields(strings), columns(strings)) == (found, dict.fromkeys(["timestamp", "n", "b"], "string"))
    answer = sample(*records, schema=TYPED)
    assert fields(answer) == columns(answer) == found
    assert [r.row for r in answer.records] == [
        {"timestamp": "2025-06-01", "n": 1.0, "x": {"y": [1]}},
        {"n": 2.5, "b": True},
    ]
    assert [r.fields for r in answer.records] == [
        {"timestamp": "2025-06-01", "n": 1, "x": {"y": [1]}},
        {"n": 2.5, "b": True},
    ]


def test_every_record_has_its_outcome() -> None:
    schema = {
        **TIMED,
        "dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}]},
        "transformSpec": {"filter": {"type": "selector", "dimension": "drop", "value": None}},
    }
    answer = sample(
        b'{"t": 1750000000000, "n": 1}',
        b'{"t": 1750000000000, "n": "x"}',
        b'{"t": 1750000000000, "drop": 1}',
        b'{"t": 0}',
        b'{"n": 1}',
        b"{",
        schema=schema,
        lateMessageRejectionStartDateTime="2020-01-01T00:00:00Z",
    )
    assert [r.outcome for r in answer.records] == [
        "stored",
        "processed_with_error",
        "filtered",
        "outside_window",
        "unparseable",
        "unparseable",
    ]
    assert [bool(r.error) for r in answer.records] == [False, True, False, False, True, True]
    assert [r.row for r in answer.records[:2]] == [{"__time": 1750000000000, "n": 1}, {"__time": 1750000000000}]
    assert all(r.row is None for r in answer.records[2:])
    # What was read of them is there all the same.
    assert [r.fields for r in answer.records[2:]] == [{"t": 1750000000000, "drop": 1}, {"t": 0}, {"n": 1}, None]
    assert columns(answer) == {"__time": "timestamp", "n": "long"}
    assert fields(answer) == {"t": "long", "n": "string", "drop": "long"}


def test_transforms_and_metrics_are_in_the_row() -> None:
    schema = {
        **TIMED,
        "dimensionsSpec": {"dimensions": ["d"]},
        "transformSpec": {"transforms": [{"type": "expression", "name": "d", "expression": "upper(a)"}]},
        "metricsSpec": [{"type": "longSum", "name": "sum", "fieldName": "v"}],
        "granularitySpec": {"rollup": False},
    }
    answer = sample(b'{"t": 5, "a": "x", "v": 3}', schema=schema)
    assert only(answer).row == {"__time": 5, "d": "X", "sum": 3}
    assert answer.rollup is None


def test_a_rollup_says_which_records_became_which_row() -> None:
    schema = {
        **TIMED,
        "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": [{"type": "count", "name": "n"}, {"type": "longLast", "name": "last", "fieldName": "v"}],
        "granularitySpec": {"rollup": True, "queryGranularity": "HOUR"},
    }
    answer = sample(
        b'{"t": 7200001, "d": "a", "v": 1}',
        b"not JSON",
        b'{"t": 3600000, "d": "b", "v": 2}',
        b'{"t": 7200000, "d": "a", "v": 3}',
        schema=schema,
    )
    assert answer.rollup is not None
    assert sorted((m.records, m.row) for m in answer.rollup) == [
        ([0, 3], {"__time": 7200000, "d": "a", "n": 2, "last": 1}),
        ([2], {"__time": 3600000, "d": "b", "n": 1, "last": 2}),
    ]
    assert columns(answer) == {"__time": "timestamp", "d": "string", "n": "long", "last": "long"}
    assert sample(b"not JSON", schema=schema).rollup == []


def test_the_decoder_s_own_column_is_not_a_record_s() -> None:
    assert only(sample(b'{"__row": "mine", "a": 1}', schema=TYPED)).row == {"__row": "mine", "a": 1}


def test_no_records_are_no_error() -> None:
    answer = sample()
    assert (answer.failure, answer.records, answer.columns) == (None, [], [])


# What can't be used


@pytest.mark.parametrize(
    ("input_format", "schema", "place"),
    [
        (
            {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": {"type": "odd"}}},
            {},
            "inputFormat",
        ),
        ({"type": "protobuf", "protoBytesDecoder": {"type": "file", "descriptor": "../x"}}, {}, "inputFormat"),
        (
            JSON,
            {
                "transformSpec": {
                    "transforms": [
                        {"type": "expression", "name": "x", "expression": "getenv('HOME')", "language": "sql"}
                    ]
                }
            },
            "dataSchema",
        ),
    ],
)
def test_a_spec_that_can_t_be_compiled_is_told_with_its_place(input_format: Any, schema: Any, place: str) -> None:
    failure = sample(b"{}", input_format=input_format, schema=schema).failure
    assert failure is not None
    assert (failure.place, failure.permanent) == (place, True)
    assert failure.message


# Limits


def test_of_a_large_payload_the_beginning_is_shown() -> None:
    record = b'{"a": "' + b"x" * 100_000 + b'"}'
    payload = only(sample(record)).payload
    assert payload is not None
    assert (payload.start, payload.size) == (record[:SHOWN_BYTES], len(record))


def test_an_answer_holds_no_more_than_it_may() -> None:
    schema = {**TIMED, "granularitySpec": {"rollup": True}}
    records = [b'{"t": %d, "a": "%s"}' % (n, b"x" * 50_000) for n in range(200)]
    answer = sample(*records, schema=schema)
    assert answer.stopped_by == "answer"
    assert 0 < len(answer.records) < len(records)
    assert len(answer.model_dump_json()) < MAX_ANSWER_BYTES + 10_000
    assert answer.rollup is not None
    assert all(place < len(answer.records) for row in answer.rollup for place in row.records)


def test_a_record_that_is_too_large_to_be_shown_does_not_hide_the_others() -> None:
    large = json.dumps({"a": ["x"] * 200_000}).encode()
    first, second = sample(large, b'{"a": []}', schema=TYPED).records
    assert (first.outcome, first.fields, first.row, first.error) == (
        "stored",
        None,
        None,
        "it is too large to be shown",
    )
    assert second.row == {"a": []}


def test_numbers_that_json_has_not_are_null() -> None:
    numbers = b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": {"e": NaN}, "f": 1}'
    lets_pass = {**JSON, "featureSpec": {"ALLOW_NON_NUMERIC_NUMBERS": True}}
    record = only(sample(numbers, input_format=lets_pass, schema=TYPED))
    assert record.fields == {"a": None, "b": None, "c": None, "d": {"e": None}, "f": 1}
    assert record.row == {"d": {"e": None}, "f": 1}


def test_of_a_name_that_stands_twice_the_first_counts_if_it_is_not_discovered() -> None:
    named = only(
        sample(b'{"a": 1, "a": 2}', schema={"dimensionsSpec": {"dimensions": [{"type": "long", "name": "a"}]}})
    )
    assert (named.outcome, named.row) == ("stored", {"a": 1})
    found = only(sample(b'{"a": 1, "a": 2}'))
    assert (found.outcome, found.row, found.error) == ("unparseable", None, "has a field twice")


@pytest.mark.parametrize("depth", [DEEPEST + 1, 100_000])
def test_what_is_nested_too_deeply_is_shown_as_text(depth: int) -> None:
    text = "[" * depth + "]" * depth
    assert json_value(text) == text
    assert only(sample(b'{"a": %s}' % text.encode())).outcome == "stored"


def test_brackets_in_a_string_are_no_depth() -> None:
    text = json.dumps({"a": '[{"' * 100 + "\\"})
    assert json_value(text) == {"a": '[{"' * 100 + "\\"}


def test_the_process_says_one_thing_and_ends() -> None:
    spec = {"ioConfig": {"inputSource": {"type": "inline", "data": '{"a": 1}'}, "inputFormat": JSON}}
    order = parse_sampler_spec({"type": "inline", "spec": spec}).order
    done = subprocess.run(
        [sys.executable, "-m", "ingestion.task.sampler"],
        input=order.model_dump_json(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert only(SampleAnswer.model_validate_json(done.stdout)).row == {"a": "1"}
    assert done.stderr == ""


@pytest.mark.parametrize(("wanted", "outcome"), [({}, "tombstone"), ({"tombstones": "quarantine"}, "unparseable")])
def test_a_record_of_a_topic_without_a_value(wanted: dict[str, str], outcome: str) -> None:
    io_config = {"type": "kafka", "topic": "t", "consumerProperties": {"bootstrap.servers": "k:1"}, "inputFormat": JSON}
    spec = {"dataSchema": {}, "ioConfig": {**io_config, **wanted}}
    order = parse_sampler_spec({"type": "kafka", "spec": spec}).order
    nothing: list[None] = [None, None]
    records = Records([None, b'{"a":1}'], [*nothing], [*nothing], [(), ()], "t", [(0, 0), (0, 1)])
    found = decode_records(order, records)
    assert found.outcomes == {0: outcome, 1: "stored"}
    assert bool(found.errors) is (outcome == "unparseable")
