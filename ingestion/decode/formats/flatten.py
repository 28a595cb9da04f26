# ruff: noqa: S608 - the SQL is built of constants; names and paths pass through engine.literal
"""``flattenSpec``: fields made from nested values, put in front of the record's own.

In front, since of a field that stands twice the first one counts: so a flattened field hides one of the record's with
its name, as in Druid, without the record being written anew. Texts that are no JSON objects are left as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from ingestion.decode.engine import RECORDS, Engine, literal, pointer
from ingestion.decode.envelope import Envelope
from ingestion.decode.fields import flat
from ingestion.decode.formats.base import Reader, Texts
from ingestion.specs.input_format import FlattenField, FlattenSpec
from ingestion.specs.json_path import JsonPath, Step, parse_json_path

_AGGREGATES = {"min": "min", "max": "max", "avg": "avg", "sum": "sum", "stddev": "stddev_pop"}


class FlatteningReader:
    """Another reader's texts, flattened."""

    def __init__(self, inner: Reader, engine: Engine, spec: FlattenSpec) -> None:
        self._inner = inner
        self._engine = engine
        self._sql = _query(spec)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        texts, errors = self._inner.read(payloads, envelope)
        return flat(self._engine.run(self._sql, RECORDS, pa.table({"j": texts})).column(0)), errors


def _query(spec: FlattenSpec) -> str:
    objects = r"CASE WHEN starts_with(ltrim(j, E' \t\r\n'), '{') AND json_valid(j) THEN j END"
    members = ", ',', ".join(f"{literal(json.dumps(f.name) + ':')}, coalesce({_value(f)}, 'null')" for f in spec.fields)
    own = r"""CASE WHEN regexp_matches(o, '^\s*\{\s*\}\s*$') THEN '}' ELSE ',' || substr(ltrim(o, E' \t\r\n'), 2) END"""
    rest = own if spec.useFieldDiscovery else "'}'"
    nothing_named = "o" if spec.useFieldDiscovery else "'{}'"
    flattened = f"concat('{{', {members}, {rest})" if members else nothing_named
    return f"SELECT CASE WHEN o IS NULL THEN j ELSE {flattened} END AS j FROM (SELECT j, {objects} AS o FROM records)"


def _value(field: FlattenField) -> str:
    """SQL for a field's JSON text, NULL where the record has none."""
    if field.type == "root":
        return f"json_extract(o, {pointer(field.expr or field.name)})::VARCHAR"
    if field.type == "tree":
        whole = "".join("/" + n.replace("~", "~0").replace("/", "~1") for n in field.nodes or [])
        return f"json_extract(o, {literal(whole)})::VARCHAR"
    path = parse_json_path(field.expr or "")
    if path.function:
        return f"to_json({_function(path)})::VARCHAR"
    extracted = f"json_extract(o, {literal(_written(path.steps))})"
    return f"{extracted}::VARCHAR" if path.is_definite else f"to_json({extracted})::VARCHAR"


def _function(path: JsonPath) -> str:
    if path.function == "length":
        extracted = f"json_extract(o, {literal(_written(path.steps))})"
        return f"json_array_length({extracted})" if path.is_definite else f"len({extracted})"
    every = path.steps if not path.is_definite else (*path.steps, Step("wildcard"))
    numbers = f"list_transform(json_extract(o, {literal(_written(every))}), lambda x: TRY_CAST(x AS DOUBLE))"
    return f"list_aggregate({numbers}, '{_AGGREGATES[path.function]}')"


def _written(steps: Sequence[Step]) -> str:
    """The path as DuckDB reads it; names hold no quotes and no backslashes."""
    forms = {"name": '."{}"', "descent": '.."{}"', "index": "[{}]", "wildcard": "[*]"}
    return "$" + "".join(forms[s.kind].format(s.name) for s in steps)
