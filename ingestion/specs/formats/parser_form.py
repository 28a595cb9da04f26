"""Druid's older form of a spec: a ``parser`` in the dataSchema.

``parser.parseSpec.timestampSpec`` and ``dimensionsSpec`` move to the dataSchema, the rest of ``parser`` to
``ioConfig.inputFormat``, before the spec is read. Errors name the places in the older form.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ingestion.specs.errors import SpecIssue, issue_at

_SCHEMA = ["spec", "dataSchema"]
_PARSER = [*_SCHEMA, "parser"]
_PARSE_SPEC = [*_PARSER, "parseSpec"]
_FORMAT = ["spec", "ioConfig", "inputFormat"]
_MOVED = ("timestampSpec", "dimensionsSpec")
_COLUMNS = ("columns", "listDelimiter", "hasHeaderRow", "skipHeaderRows")
_TEXT_FORMATS = {
    "json": ("flattenSpec", "featureSpec", "keepNullColumns"),
    "csv": _COLUMNS,
    "tsv": (*_COLUMNS, "delimiter"),
    "delimited": (*_COLUMNS, "delimiter"),
    "regex": ("columns", "listDelimiter", "pattern"),
}
# type → the parser's own fields, and the formats that its parseSpec may have.
_OTHERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "avro_stream": (("avroBytesDecoder", "binaryAsString", "extractUnionsByType"), ("avro", "timeAndDims")),
    "protobuf": (("protoBytesDecoder", "descriptor", "protoMessageType"), ("json", "protobuf", "timeAndDims")),
    "thrift": (
        ("thriftClass", "thriftIdl", "thriftFile", "thriftJar", "jarPath", "protocol"),
        ("json", "thrift", "timeAndDims"),
    ),
}


@dataclass
class Rewritten:
    """The document in the current form, and the errors of the older form."""

    document: dict[str, Any]
    issues: list[SpecIssue] = field(default_factory=list)

    def as_written(self, issue: SpecIssue) -> SpecIssue:
        """An error of the new form, with its place in the old form."""
        for place, origin in ((_FORMAT, _PARSER), *(([*_SCHEMA, n], [*_PARSE_SPEC, n]) for n in _MOVED)):
            head, base = issue_at([*place], ""), issue_at([*origin], "")
            if issue.pointer == head.pointer or issue.pointer.startswith(head.pointer + "/"):
                if place is _FORMAT:
                    return SpecIssue(base.path, base.pointer, f"{issue.path.removeprefix('spec.')}: {issue.message}")
                return SpecIssue(
                    base.path + issue.path.removeprefix(head.path),
                    base.pointer + issue.pointer.removeprefix(head.pointer),
                    issue.message,
                )
        return issue


def without_parser(document: dict[str, Any]) -> Rewritten | None:
    """The nested document without its parser; None when it has none."""
    schema = _get_object(_get_object(document, "spec"), "dataSchema")
    if schema is None or "parser" not in schema:
        return None
    new = Rewritten(copy.deepcopy(document))
    new_schema = new.document["spec"]["dataSchema"]
    parser = new_schema.pop("parser")
    input_format = None
    if isinstance(parser, dict):
        input_format = _format_of(new, new_schema, parser)
    else:
        new.issues.append(issue_at([*_PARSER], "must be an object"))
    _place_format(new, _get_object(new.document["spec"], "ioConfig"), input_format)
    return new


def _place_format(new: Rewritten, io_config: dict[str, Any] | None, input_format: dict[str, Any] | None) -> None:
    """Have the format in the ioConfig. Without one a stand-in: that it is missing there is not what is wrong."""
    if io_config is None:
        return
    existing = io_config.setdefault("inputFormat", input_format or {"type": "json"})
    if input_format is not None and existing != input_format:
        message = "ioConfig.inputFormat and the older parser contradict each other: give one of them"
        new.issues.append(issue_at([*_PARSER], message))


def _get_object(parent: Any, key: str) -> dict[str, Any] | None:
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else None


def _format_of(new: Rewritten, schema: dict[str, Any], parser: dict[str, Any]) -> dict[str, Any] | None:
    kind, parse_spec = parser.pop("type", "string"), parser.pop("parseSpec", None)
    if not isinstance(parse_spec, dict):
        message = "required field is missing" if parse_spec is None else "must be an object"
        new.issues.append(issue_at([*_PARSE_SPEC], message))
        return None
    for name in _MOVED:
        _move_part(new, schema, parse_spec, name)
    if kind != "string" and not (isinstance(kind, str) and kind in _OTHERS):
        expected = ", ".join(repr(k) for k in ("string", *_OTHERS))
        new.issues.append(issue_at([*_PARSER, "type"], f"must be one of {expected}, not {kind!r}"))
        return None
    written = parse_spec.pop("format", None)
    if kind == "string":
        input_format = _text_format(new, written, parse_spec)
    else:
        input_format = _binary_format(new, kind, written, parser, parse_spec)
    _refuse_unknown(new, _PARSER, parser)
    _refuse_unknown(new, _PARSE_SPEC, parse_spec)
    return input_format


def _move_part(new: Rewritten, schema: dict[str, Any], parse_spec: dict[str, Any], name: str) -> None:
    if name not in parse_spec:
        return
    value = parse_spec.pop(name)
    if name in schema and schema[name] != value:
        where = f"dataSchema.{name} and dataSchema.parser.parseSpec.{name}"
        new.issues.append(issue_at([*_PARSE_SPEC, name], f"{where} contradict each other: give one of them"))
    else:
        schema[name] = value


def _text_format(new: Rewritten, written: Any, parse_spec: dict[str, Any]) -> dict[str, Any] | None:
    if not isinstance(written, str) or written not in _TEXT_FORMATS:
        message = f"must be one of {', '.join(repr(f) for f in _TEXT_FORMATS)}, not {written!r}"
        new.issues.append(issue_at([*_PARSE_SPEC, "format"], message))
        parse_spec.clear()
        return None
    return {"type": written, **_pop_fields(parse_spec, _TEXT_FORMATS[written])}


def _binary_format(
    new: Rewritten, kind: str, written: Any, parser: dict[str, Any], parse_spec: dict[str, Any]
) -> dict[str, Any]:
    names, formats = _OTHERS[kind]
    if written is not None and written not in formats:
        message = f"must be one of {', '.join(repr(f) for f in formats)} in a parser of type {kind}, not {written!r}"
        new.issues.append(issue_at([*_PARSE_SPEC, "format"], message))
    own_fields = _pop_fields(parser, names)
    if kind == "protobuf" and "protoBytesDecoder" not in own_fields:
        own_fields = {"protoBytesDecoder": {"type": "file", **own_fields}}
    if "jarPath" in own_fields:
        own_fields["thriftJar"] = own_fields.pop("jarPath")
    return {"type": kind, **own_fields, **_pop_fields(parse_spec, ("flattenSpec",))}


def _pop_fields(source: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: source.pop(name) for name in names if name in source}


def _refuse_unknown(new: Rewritten, place: list[str], rest: dict[str, Any]) -> None:
    for name in rest:
        new.issues.append(issue_at([*place, name], "unknown field: check its spelling, or remove it"))
