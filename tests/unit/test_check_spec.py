"""What only the data plane can say of a spec, and at which place of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingestion.specs.messages.checking import CheckAnswer, CheckOrder, needs_check
from ingestion.specs.tasks.ingestion_spec import issues_as_written, parse_task_spec
from ingestion.task.check_spec import find_issues
from tests.unit.test_specs import changed

AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
THRIFT = {"type": "thrift", "thriftClass": "R", "thriftIdl": "struct R { 1: string a }"}


def expression(name: str, text: str) -> dict[str, Any]:
    return {"type": "expression", "name": name, "expression": text, "language": "sql"}


def when(text: str) -> dict[str, Any]:
    return {"type": "expression", "expression": text, "language": "sql"}


REGEX = {"type": "regex", "dimension": "a", "pattern": "["}
SEARCH = {"type": "search", "dimension": "a", "query": {"type": "regex", "pattern": "["}}


def counting(condition: dict[str, Any]) -> dict[str, Any]:
    return {"type": "filtered", "filter": condition, "aggregator": {"type": "count", "name": "n"}}


def avro(schema: Any) -> dict[str, Any]:
    return {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": schema}}


def order_of(document: dict[str, Any], folder: str = "", reads_files: bool = True) -> CheckOrder:
    spec = parse_task_spec(document).spec
    return CheckOrder(
        data_schema=spec.dataSchema,
        input_format=spec.ioConfig.inputFormat,
        schema_folder=folder,
        reads_files=reads_files,
    )


def found(document: dict[str, Any], **how: Any) -> list[tuple[str, str]]:
    """(pointer, message) of each fault, as a user is told."""
    told = [(i.place, i.message) for i in find_issues(order_of(document, **how))]
    return [(i.pointer, i.message) for i in issues_as_written(document, told)]


def one(document: dict[str, Any], **how: Any) -> tuple[str, str]:
    (only,) = found(document, **how)
    return only


def test_every_expression_that_is_no_good_is_told_with_its_place() -> None:
    transforms = [expression("a", "x + 1"), expression("b", "getenv('HOME')"), expression("c", "(")]
    nested = {"type": "not", "field": {"type": "or", "fields": [when("a > 1"), when("read_text(a)")]}}
    condition = {"type": "and", "fields": [{"type": "true"}, nested]}
    told = found(changed(("dataSchema/transformSpec", {"transforms": transforms, "filter": condition})))
    assert [pointer for pointer, _ in told] == [
        "/dataSchema/transformSpec/transforms/1/expression",
        "/dataSchema/transformSpec/transforms/2/expression",
        "/dataSchema/transformSpec/filter/fields/1/field/fields/1/expression",
    ]
    assert told[0][1].startswith("function 'getenv' is not supported in expressions")


def test_a_metrics_expression_that_is_no_good_is_told_with_its_place() -> None:
    good, bad = ({"type": "longSum", "name": name, "expression": name} for name in ("a", "unknown(b)"))
    within = {"type": "filtered", "name": "m", "filter": {"type": "true"}, "aggregator": {**bad, "name": "n"}}
    told = found(changed(("dataSchema/metricsSpec", [good, bad, within])))
    assert [pointer for pointer, _ in told] == [
        "/dataSchema/metricsSpec/1/expression",
        "/dataSchema/metricsSpec/2/aggregator/expression",
    ]
    assert "'unknown'" in told[0][1]


def test_in_the_nested_form_places_are_those_of_that_form() -> None:
    flat = changed(("dataSchema/transformSpec", {"filter": when("(")}))
    parts = ("dataSchema", "ioConfig", "tuningConfig")
    document = {"type": flat["type"], "spec": {name: flat[name] for name in parts if name in flat}}
    assert one(document)[0] == "/spec/dataSchema/transformSpec/filter/expression"


@pytest.mark.parametrize(
    ("written", "place", "message"),
    [
        (avro({"type": "record"}), "/avroBytesDecoder", "the Avro schema can't be used"),
        (avro({"type": "record", "name": "R", "fields": [{"name": "a", "type": "no"}]}), "/avroBytesDecoder", "Avro"),
        (
            {"type": "protobuf", "protoBytesDecoder": {"type": "inline", "descriptorString": "!"}},
            "/protoBytesDecoder",
            "descriptorString is not base64",
        ),
        ({**THRIFT, "thriftClass": "S"}, "/thriftClass", "the Thrift IDL has no struct S"),
        ({**THRIFT, "thriftIdl": "struct"}, "/thriftClass", "the Thrift IDL can't be used"),
        (
            {"type": "kafka", "valueFormat": {"type": "json"}, "keyFormat": avro({"type": "record"})},
            "/keyFormat/avroBytesDecoder",
            "the Avro schema can't be used",
        ),
        (
            {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_file", "file": "a.avsc"}},
            "/avroBytesDecoder",
            "a spec may not name files on this site",
        ),
    ],
)
def test_schemas_that_are_no_good(written: dict[str, Any], place: str, message: str) -> None:
    pointer, told = one(changed(("ioConfig/inputFormat", written)))
    assert pointer == "/ioConfig/inputFormat" + place
    assert message in told


def test_a_schema_of_the_older_form_is_told_where_it_was_written() -> None:
    parser = {
        "type": "avro_stream",
        "avroBytesDecoder": {"type": "schema_inline", "schema": {"type": "record"}},
        "parseSpec": {"format": "avro", "timestampSpec": {"column": "time"}},
    }
    document = changed(("dataSchema/parser", parser))
    del document["ioConfig"]["inputFormat"], document["dataSchema"]["timestampSpec"]
    document["dataSchema"].pop("dimensionsSpec", None)
    pointer, message = one(document)
    assert pointer == "/dataSchema/parser"
    assert message.startswith("ioConfig.inputFormat.avroBytesDecoder: the Avro schema can't be used")


def test_files_of_schemas_are_read_where_the_folder_is(tmp_path: Path) -> None:
    written = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_file", "file": "a.avsc"}}
    document = changed(("ioConfig/inputFormat", written))
    assert "can't be read" in one(document, folder=str(tmp_path))[1]
    (tmp_path / "a.avsc").write_text(json.dumps(AVRO))
    assert found(document, folder=str(tmp_path)) == []
    assert found(document, folder="/where/indexers/run", reads_files=False) == []


def test_a_pattern_of_times_that_is_no_good() -> None:
    pointer, message = one(changed(("dataSchema/timestampSpec/format", "%Y-%Q")))
    assert pointer == "/dataSchema/timestampSpec/format"
    assert "can't be used" in message


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("dataSchema/transformSpec", {"filter": {"type": "and", "fields": [REGEX]}}, "filter/fields/0/pattern"),
        ("dataSchema/transformSpec", {"filter": {"type": "istrue", "field": REGEX}}, "filter/field/pattern"),
        ("dataSchema/transformSpec", {"filter": {"type": "not", "field": SEARCH}}, "filter/field/query/pattern"),
        ("dataSchema/metricsSpec", [counting(REGEX)], "0/filter/pattern"),
        ("dataSchema/metricsSpec", [{**counting(REGEX), "aggregator": counting(SEARCH)}], "0/filter/pattern"),
        ("ioConfig/inputFormat", {"type": "regex", "pattern": "[", "columns": ["a"]}, "pattern"),
    ],
)
def test_a_regular_expression_that_is_no_good_is_told_with_its_place(path: str, value: Any, place: str) -> None:
    told = found(changed((path, value)))
    assert told[0][0] == f"/{path}/{place}"
    assert "without its closing" in told[0][1]


@pytest.mark.parametrize(
    ("path", "value", "needed"),
    [
        ("ioConfig/inputFormat", {"type": "json"}, False),
        ("ioConfig/inputFormat", {"type": "csv", "columns": ["a"]}, False),
        ("ioConfig/inputFormat", {"type": "kafka", "valueFormat": {"type": "json"}}, False),
        ("ioConfig/inputFormat", {"type": "kafka", "valueFormat": THRIFT}, True),
        ("ioConfig/inputFormat", avro(AVRO), True),
        ("dataSchema/transformSpec", {"filter": {"type": "true"}}, False),
        ("dataSchema/transformSpec", {"filter": {"type": "not", "field": when("a")}}, True),
        ("dataSchema/transformSpec", {"filter": {"type": "istrue", "field": when("a")}}, True),
        ("dataSchema/transformSpec", {"filter": {"type": "isfalse", "field": REGEX}}, True),
        ("dataSchema/transformSpec", {"filter": {"type": "and", "fields": [REGEX]}}, True),
        ("dataSchema/transformSpec", {"filter": SEARCH}, True),
        ("dataSchema/transformSpec", {"filter": {**SEARCH, "query": {"type": "contains", "value": "["}}}, False),
        ("dataSchema/metricsSpec", [counting(REGEX)], True),
        ("dataSchema/metricsSpec", [counting({"type": "true"})], False),
        ("ioConfig/inputFormat", {"type": "regex", "pattern": "(.*)", "columns": ["a"]}, True),
        ("dataSchema/transformSpec", {"transforms": [expression("a", "1")]}, True),
        ("dataSchema/timestampSpec/format", "%Y", True),
        ("dataSchema/metricsSpec", [{"type": "longSum", "name": "m", "fieldName": "v"}], False),
        ("dataSchema/metricsSpec", [{"type": "longSum", "name": "m", "expression": "v"}], True),
    ],
)
def test_a_process_is_asked_only_where_it_can_tell_something(path: str, value: Any, needed: bool) -> None:
    assert needs_check(parse_task_spec(changed((path, value))).spec) is needed


def test_the_process_answers_in_one_line() -> None:
    order = order_of(changed(("dataSchema/transformSpec", {"transforms": [expression("a", "(")]})))
    done = subprocess.run(
        [sys.executable, "-m", "ingestion.task.check_spec"],
        input=order.model_dump_json() + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    (only,) = CheckAnswer.model_validate_json(done.stdout).issues
    assert only.place == ["dataSchema", "transformSpec", "transforms", 0, "expression"]
