"""Input formats in a spec: what is taken, what is refused and where, and the older form with a parser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingestion.specs.errors import SpecError
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec, parse_task_spec
from tests.unit.test_specs import changed, faults

AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "string"], "default": None}]}
REGISTRY = {"type": "schema_registry", "url": "http://registry:8081"}
FORMATS: list[dict[str, Any]] = [
    {"type": "json", "flattenSpec": {"fields": ["a", {"type": "path", "name": "b", "expr": "$.c[0]['d']"}]}},
    {"type": "csv", "columns": ["a", "b"], "listDelimiter": "|", "skipHeaderRows": 1},
    {"type": "csv", "findColumnsFromHeader": True},
    {"type": "tsv", "columns": ["a"], "delimiter": ";"},
    {"type": "delimited", "columns": ["a"]},
    {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": AVRO}, "binaryAsString": True},
    {"type": "avro_stream", "avroBytesDecoder": {"type": "multiple_schemas_inline", "schemas": {"1": AVRO}}},
    {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_file", "file": "a.avsc"}, "extractUnionsByType": True},
    {"type": "avro_stream", "avroBytesDecoder": {**REGISTRY, "capacity": 10}},
    {"type": "protobuf", "protoBytesDecoder": {"type": "file", "descriptor": "file:///x.desc"}},
    {"type": "protobuf", "protoBytesDecoder": {"type": "inline", "descriptorString": "AA==", "protoMessageType": "M"}},
    {"type": "protobuf", "protoBytesDecoder": {"urls": ["http://a:1", "https://b"]}},
    {"type": "thrift", "thriftClass": "a.B", "thriftIdl": "struct B {}", "protocol": "compact"},
    {"type": "kafka", "valueFormat": {"type": "json"}, "keyFormat": {"type": "csv", "columns": ["x"]}},
]


def with_format(spec: Any) -> dict[str, Any]:
    return changed(("ioConfig/inputFormat", spec))


@pytest.mark.parametrize("spec", FORMATS, ids=lambda s: str(s["type"]))
def test_formats_are_taken_and_stored_as_they_are(spec: dict[str, Any]) -> None:
    task = parse_task_spec(with_format(spec))
    stored = task.canonical()
    assert parse_task_spec(json.loads(json.dumps(stored))) == task
    assert stored["spec"]["ioConfig"]["inputFormat"]["type"] == spec["type"]


def test_an_avro_schema_is_stored_with_its_nulls() -> None:
    stored = parse_task_spec(with_format(FORMATS[5])).canonical()
    assert stored["spec"]["ioConfig"]["inputFormat"]["avroBytesDecoder"]["schema"] == AVRO


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({}, "type", "required field is missing"),
        ({"type": "orc"}, "type", "must be one of 'json', 'csv', 'tsv'"),
        ({"type": "json", "flatenSpec": {}}, "flatenSpec", "unknown field"),
        ({"type": "json", "featureSpec": {"ALLOW_COMMENTS": True}}, "featureSpec", "not supported: ALLOW_COMMENTS"),
        ({"type": "json", "assumeNewlineDelimited": True, "useJsonNodeReader": True}, "", "not both"),
        ({"type": "regex", "columns": ["a"]}, "pattern", "required field is missing"),
        ({"type": "regex", "pattern": "(a)(b)", "columns": ["a", "a"]}, "", "columns are named twice: a"),
        ({"type": "json", "flattenSpec": {"fields": ["a", "a"]}}, "flattenSpec", "fields are named twice: a"),
        ({"type": "csv"}, "", "columns is required"),
        ({"type": "csv", "columns": ["a", "a"]}, "", "columns are named twice: a"),
        ({"type": "csv", "columns": ["a"], "listDelimiter": ","}, "", "must differ"),
        ({"type": "tsv", "columns": ["a"], "listDelimiter": "\t"}, "", "must differ"),
        ({"type": "csv", "hasHeaderRow": True, "findColumnsFromHeader": True}, "", "not both"),
        ({"type": "avro_stream"}, "avroBytesDecoder", "required field is missing"),
        ({"type": "avro_stream", "avroBytesDecoder": {}}, "avroBytesDecoder", "schema_repo"),
        ({"type": "avro_stream", "avroBytesDecoder": {"type": "schema_repo"}}, "avroBytesDecoder", "AVRO-1124"),
        ({"type": "protobuf", "protoBytesDecoder": {}}, "protoBytesDecoder", "give url, or urls"),
        ({"type": "thrift", "thriftClass": "B"}, "", "thriftIdl"),
        ({"type": "thrift", "thriftClass": "B", "thriftJar": "x.jar"}, "", "Headgate runs no Java"),
        ({"type": "kafka"}, "valueFormat", "required field is missing"),
        ({"type": "kafka", "valueFormat": {"type": "kafka"}}, "valueFormat.type", "must be one of"),
        ({"type": "kafka", "valueFormat": {"type": "csv"}}, "valueFormat", "columns is required"),
    ],
)
def test_what_is_refused_and_where(spec: dict[str, Any], path: str, message: str) -> None:
    found = faults(with_format(spec))
    assert list(found) == [f"ioConfig.inputFormat.{path}".rstrip(".")]
    assert message in next(iter(found.values()))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"type": "path", "name": "a"}, "needs expr"),
        ({"type": "path", "name": "a", "expr": "$.a[?(@.b)]"}, "the filter [?(@.b)] has an error at"),
        ({"type": "tree", "name": "a"}, "needs nodes"),
        ({"type": "root", "name": "a", "nodes": ["b"]}, "only fields of type tree"),
    ],
)
def test_fields_that_are_refused(field: dict[str, Any], message: str) -> None:
    found = faults(with_format({"type": "json", "flattenSpec": {"fields": [field]}}))
    assert message in next(iter(found.values()))


@pytest.mark.parametrize(
    ("registry", "message"),
    [
        ({"config": {"basic.auth.user.info": "letmein"}}, "'basic.auth.user.info' must be user:password"),
        ({"config": {"ssl.keystore.location": "letmein"}}, "'ssl.keystore.location' is not supported"),
        ({"config": {"basic.auth.credentials.source": "letmein"}}, "must be USER_INFO"),
        ({"headers": {"Host": "letmein"}}, "the header 'Host' can't be set"),
        ({"headers": {"a b": "letmein"}}, "'a b' is not a header name"),
        ({"headers": {"Authorization": "letmein\r\nHost: x"}}, "must be visible ASCII, in one line"),
        ({"url": "http://fred:letmein@registry"}, "must not contain a user or password"),
        ({"url": "file:///etc/passwd"}, "http://host:port"),
        ({"url": "http://"}, "http://host:port"),
        ({"url": "http://a,file:///etc/passwd"}, "http://host:port"),
        ({"urls": ["http://a"]}, "give url, or urls"),
    ],
)
def test_registries_that_are_refused(registry: dict[str, Any], message: str) -> None:
    spec = {"type": "avro_stream", "avroBytesDecoder": {**REGISTRY, **registry}}
    with pytest.raises(SpecError) as caught:
        parse_task_spec(with_format(spec))
    assert message in str(caught.value)
    assert "letmein" not in str(caught.value)


# The older form

TIME = {"column": "t", "format": "auto"}
NAMED = {"dimensions": ["a"]}


def with_parser(parser: Any, **kept: Any) -> dict[str, Any]:
    return changed(
        ("dataSchema/parser", parser),
        ("dataSchema/timestampSpec", kept.get("time", ...)),
        ("dataSchema/dimensionsSpec", kept.get("dimensions", ...)),
        ("ioConfig/inputFormat", kept.get("format", ...)),
    )


@pytest.mark.parametrize(
    ("parser", "expected"),
    [
        ({"type": "string", "parseSpec": {"format": "json"}}, {"type": "json"}),
        (
            {"type": "string", "parseSpec": {"format": "csv", "columns": ["t", "a"], "listDelimiter": "|"}},
            {"type": "csv", "columns": ["t", "a"], "listDelimiter": "|"},
        ),
        (
            {"parseSpec": {"format": "tsv", "columns": ["t"], "delimiter": ";", "hasHeaderRow": True}},
            {"type": "tsv", "columns": ["t"], "delimiter": ";", "hasHeaderRow": True},
        ),
        (
            {"type": "string", "parseSpec": {"format": "json", "flattenSpec": {"fields": ["a"]}}},
            {"type": "json", "flattenSpec": {"fields": ["a"]}},
        ),
        (
            {"type": "avro_stream", "avroBytesDecoder": REGISTRY, "parseSpec": {"format": "avro"}},
            {"type": "avro_stream", "avroBytesDecoder": REGISTRY},
        ),
        (
            {"type": "protobuf", "descriptor": "m.desc", "protoMessageType": "M", "parseSpec": {"format": "json"}},
            {
                "type": "protobuf",
                "protoBytesDecoder": {"type": "file", "descriptor": "m.desc", "protoMessageType": "M"},
            },
        ),
        (
            {
                "type": "thrift",
                "thriftClass": "B",
                "thriftIdl": "struct B {}",
                "protocol": "compact",
                "parseSpec": {"format": "json"},
            },
            {"type": "thrift", "thriftClass": "B", "thriftIdl": "struct B {}", "protocol": "compact"},
        ),
    ],
)
def test_a_parser_means_the_same(parser: dict[str, Any], expected: dict[str, Any]) -> None:
    older = {**parser, "parseSpec": {**parser["parseSpec"], "timestampSpec": TIME, "dimensionsSpec": NAMED}}
    modern = changed(
        ("dataSchema/timestampSpec", TIME), ("dataSchema/dimensionsSpec", NAMED), ("ioConfig/inputFormat", expected)
    )
    assert parse_task_spec(with_parser(older)) == parse_task_spec(modern)
    assert parse_supervisor_spec(with_parser(older)).spec == parse_task_spec(modern).spec
    both = with_parser(older, time=TIME, dimensions=NAMED, format=expected)
    assert parse_task_spec(both) == parse_task_spec(modern)


def test_the_document_is_not_changed() -> None:
    document = with_parser({"type": "string", "parseSpec": {"format": "json", "timestampSpec": TIME}})
    before = json.dumps(document)
    parse_task_spec(document)
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    ("parser", "kept", "path", "message"),
    [
        (3, {"time": TIME}, "", "must be an object"),
        ({"type": "string"}, {"time": TIME}, ".parseSpec", "required field is missing"),
        ({"type": "hadoopyString", "parseSpec": {}}, {"time": TIME}, ".type", "must be one of 'string'"),
        ({"parseSpec": {"format": "javascript"}}, {"time": TIME}, ".parseSpec.format", "must be one of 'json', 'csv'"),
        ({"parseSpec": {"format": "json", "pattern": "x"}}, {"time": TIME}, ".parseSpec.pattern", "unknown field"),
        ({"parseSpec": {"format": "json"}, "x": 1}, {"time": TIME}, ".x", "unknown field"),
        ({"parseSpec": {"format": "json"}}, {}, ".parseSpec.timestampSpec", "required field is missing"),
        (
            {"parseSpec": {"format": "json", "timestampSpec": {"colum": "t"}}},
            {},
            ".parseSpec.timestampSpec.colum",
            "unknown field",
        ),
        (
            {"parseSpec": {"format": "json", "timestampSpec": TIME}},
            {"time": {"column": "other"}},
            ".parseSpec.timestampSpec",
            "contradict each other",
        ),
        (
            {"parseSpec": {"format": "json"}},
            {"time": TIME, "format": {"type": "tsv", "columns": ["a"]}},
            "",
            "contradict each other",
        ),
        ({"parseSpec": {"format": "csv"}}, {"time": TIME}, "", "columns is required"),
        (
            {"type": "thrift", "thriftClass": "B", "jarPath": "b.jar", "parseSpec": {"format": "json"}},
            {"time": TIME},
            "",
            "Headgate runs no Java",
        ),
        (
            {"type": "avro_stream", "avroBytesDecoder": REGISTRY, "parseSpec": {"format": "csv"}},
            {"time": TIME},
            ".parseSpec.format",
            "must be one of 'avro'",
        ),
    ],
)
def test_faults_of_a_parser_are_told_where_they_were_written(
    parser: Any, kept: dict[str, Any], path: str, message: str
) -> None:
    found = faults(with_parser(parser, **kept))
    assert message in found["dataSchema.parser" + path]
    assert all(p.startswith("dataSchema.parser") for p in found)
