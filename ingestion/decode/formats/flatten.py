# ruff: noqa: S608 - the SQL is built of constants; names and paths pass through engine.literal
"""``flattenSpec``: fields made from nested values, put in front of the record's own.

In front, since of a field that stands twice the first one counts: so a flattened field hides one of the record's with
its name, as in Druid, without the record being written anew. Texts that are no JSON objects are left as they are.
Without ``useFieldDiscovery`` no field of the record is discovered, but those that the spec names are read, as in Druid.
Where nobody looks at the record as a whole, no text is made: its fields are read where they are (``flatten_in_place``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.engine import Engine, Suspects, sql_json_pointer, sql_literal
from ingestion.decode.envelope import Envelope
from ingestion.decode.exact_numbers import may_hold_exact_number
from ingestion.decode.fields import BY_NAME, FieldPaths, flat
from ingestion.decode.formats import jq, json_path_values
from ingestion.decode.formats.base import Reader, Texts
from ingestion.specs.formats.flatten_spec import FlattenField, FlattenSpec
from ingestion.specs.formats.input_format import InputFormat, JsonInputFormat
from ingestion.specs.formats.jq import Node, parse_jq
from ingestion.specs.formats.json_path import JsonPath, Step, parse_json_path
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.metrics import FilteredMetric

Steps = tuple[Step, ...]
_SEARCHED = "searched"  # j string: one record's text; and what its paths that search, and its jq programs, find
# As Druid's library reckons.
_STDDEV = """sqrt(list_sum(list_transform({0}, lambda x: x * x)) / list_count({0})
  - list_sum({0}) * list_sum({0}) / list_count({0}) / list_count({0}))"""


class FlatteningReader:
    """Another reader's texts, flattened. Paths that search and jq are followed record by record, the rest by DuckDB.

    ``own_fields``: which of the record's own fields are kept; None: all. ``keeps_digits``: numbers stay as the other
    reader writes them; DuckDB writes them anew (see ``exact_numbers``).
    """

    def __init__(
        self,
        inner: Reader,
        engine: Engine,
        spec: FlattenSpec,
        own_fields: frozenset[str] | None = None,
        *,
        keeps_digits: bool = False,
    ) -> None:
        self._inner = inner
        self._engine = engine
        self._keeps_digits = keeps_digits
        duckdb_paths = [*filter(None, map(_duckdb_path, spec.fields)), *map(_top_level_path, sorted(own_fields or ()))]
        self._digits = {path: f"d{n}" for n, path in enumerate(dict.fromkeys(duckdb_paths))} if keeps_digits else {}
        paths = dict.fromkeys(
            _path(f) for f in spec.fields if f.type == "path" and json_path_values.is_followed(_path(f))
        )
        self._searched = {path: f"p{number}" for number, path in enumerate(paths)}
        self._programs = [(f.name, parse_jq(f.expr or "")) for f in spec.fields if f.type == "jq"]
        program_columns: dict[JsonPath | str, str] = {
            name: f"q{number}" for number, (name, _) in enumerate(self._programs)
        }
        self._sql, self._checking_sql = (
            _flatten_sql(spec, program_columns | dict(self._searched.items()), self._digits, own_fields, check)
            for check in (False, True)
        )
        self._texts = Suspects(engine, _SEARCHED)
        names = ("j", *self._searched.values(), *self._digits.values(), *program_columns.values())
        engine.register(_SEARCHED, pa.schema([(name, pa.string()) for name in names]))

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        texts, errors = self._inner.read(payloads, envelope)
        columns = {name: self._found(texts, path) for path, name in self._searched.items()}
        if self._digits:
            suspects = pc.if_else(may_hold_exact_number(texts), texts, None)
            columns |= {name: self._found(suspects, path) for path, name in self._digits.items()}
        if self._programs:
            program_values, failed = self._results(texts)
            columns |= {f"q{number}": pa.array(column, pa.string()) for number, column in enumerate(program_values)}
            texts = pa.array([None if i in failed else text for i, text in enumerate(texts.to_pylist())], pa.string())
            errors = errors | failed
        table = pa.table({"j": texts, **columns})
        return flat(self._texts.run(self._sql, self._checking_sql, table).column(0)), errors

    def _results(self, texts: pa.Array) -> tuple[list[list[str | None]], dict[int, str]]:
        """What each program finds, and why records are unparseable with which one fails."""
        columns: list[list[str | None]] = [[None] * len(texts) for _ in self._programs]
        failed = {}
        for place, text in enumerate(texts.to_pylist()):
            try:
                for column, value in zip(columns, self._values(text), strict=False):
                    column[place] = value
            except EvaluationFailed as error:
                failed[place] = str(error)
        return columns, failed

    def _values(self, text: str | None) -> Iterator[str]:
        """Of one record; none where it is no JSON object, of which others tell."""
        self._engine.check_interrupted()
        record = None if text is None else jq.load_record(text)
        if record is not None:
            for name, program in self._programs:
                yield self._value(name, program, record)

    def _value(self, name: str, program: Node, record: dict[str, Any]) -> str:
        try:
            return jq.first_value(record, program, self._engine.check_interrupted)
        except EvaluationFailed:
            raise EvaluationFailed(f"the jq program of field {name!r} fails, or finds nothing") from None

    def _found(self, texts: pa.Array, path: JsonPath) -> pa.Array:
        return pa.array([self._found_in(text, path) for text in texts.to_pylist()], pa.string())

    def _found_in(self, text: str | None, path: JsonPath) -> str | None:
        self._engine.check_interrupted()
        return None if text is None else json_path_values.find_values(text, path, keeps_digits=self._keeps_digits)


def flatten_in_place(
    schema: DataSchema, read: InputFormat, *, keeps_digits: bool = False
) -> tuple[InputFormat, FieldPaths]:
    """The format without its flattenSpec, and where the fields of that are; or all as it is.

    In place where DuckDB itself finds each field, nobody looks at the whole record, and no number keeps its digits.
    """
    flatten = read.flattenSpec if isinstance(read, JsonInputFormat) else None
    looks = schema.transformSpec.filter is not None or any(isinstance(m, FilteredMetric) for m in schema.metricsSpec)
    if (
        flatten is None
        or keeps_digits
        or looks
        or schema.dimensionsSpec.discovers
        or not all(map(_is_found_by_duckdb, flatten.fields))
    ):
        return read, BY_NAME
    places = FieldPaths({f.name: _place(f, {}) for f in flatten.fields})
    return read.model_copy(update={"flattenSpec": None}), places


def _is_found_by_duckdb(field: FlattenField) -> bool:
    if field.type != "path":
        return field.type != "jq"
    return not (_path(field).function or json_path_values.is_followed(_path(field)))


def _path(field: FlattenField) -> JsonPath:
    return parse_json_path(field.expr or "")


def _duckdb_path(field: FlattenField) -> JsonPath | None:
    """The path of a value that DuckDB finds unchanged. None if it computes the value or cannot find it."""
    if field.type == "path":
        path = _path(field)
        return None if path.function or json_path_values.is_followed(path) else path
    names = {"root": [field.expr or field.name], "tree": field.nodes or []}.get(field.type)
    return None if names is None else JsonPath(tuple(Step("name", name) for name in names))


def _flatten_sql(
    spec: FlattenSpec,
    searched: Mapping[JsonPath | str, str],
    digits: Mapping[JsonPath, str],
    own_fields: frozenset[str] | None,
    check: bool,
) -> str:
    """``check``: look first whether a text is JSON; else the query fails where it reads one that is not."""
    named = {
        name: sql_json_pointer(name) for name in sorted((own_fields or frozenset()) - {f.name for f in spec.fields})
    }
    places = dict.fromkeys([*filter(None, (_place(f, searched) for f in spec.fields)), *named.values()])
    numbers = {place: number for number, place in enumerate(places, 1)}
    valid = "AND json_valid(j)" if check or not numbers else ""
    objects = rf"CASE WHEN starts_with(ltrim(j, E' \t\r\n'), '{{') {valid} THEN j END"
    members = [
        f"{_key(f.name)} || coalesce({_field_digits(f, digits)}{_value_sql(f, searched, numbers)}, 'null')"
        for f in spec.fields
    ]
    # Null where the record has none, so that concat_ws leaves it out.
    members += [
        f"{_key(name)} || coalesce({_path_digits(_top_level_path(name), digits)}l[{numbers[place]}]::VARCHAR)"
        for name, place in named.items()
    ]
    joined = f"concat_ws(',', {', '.join(members)})" if members else "''"
    rest = (
        r"""CASE WHEN regexp_matches(o, '^\s*\{\s*\}\s*$') THEN '}' ELSE ',' || substr(ltrim(o, E' \t\r\n'), 2) END"""
    )
    all_fields = f"concat('{{', {joined}, {rest})" if members else "o"
    flattened = all_fields if own_fields is None else f"concat('{{', {joined}, '}}')"
    # All at once: each call reads the record from its beginning.
    extracted = f"json_extract(o, [{', '.join(numbers)}])" if numbers else "NULL"
    return (
        f"SELECT CASE WHEN o IS NULL THEN j ELSE {flattened} END AS j"
        f" FROM (SELECT *, {extracted} AS l FROM (SELECT *, {objects} AS o FROM {_SEARCHED}))"
    )


def _key(name: str) -> str:
    return sql_literal(json.dumps(name) + ":")


def _place(field: FlattenField, searched: Mapping[JsonPath | str, str]) -> str:
    """Where DuckDB finds a field, as a literal; empty where it was searched for, or made by a program."""
    if field.type == "jq":
        return ""
    if field.type == "root":
        return sql_json_pointer(field.expr or field.name)
    if field.type == "tree":
        return sql_literal("".join("/" + n.replace("~", "~0").replace("/", "~1") for n in field.nodes or []))
    path = _path(field)
    return "" if path in searched else sql_literal(_path_text(path.steps))


def _value_sql(field: FlattenField, searched: Mapping[JsonPath | str, str], numbers: Mapping[str, int]) -> str:
    """SQL for a field's JSON text, NULL where the record has none."""
    if field.type == "jq":
        return searched[field.name]
    place = _place(field, searched)
    extracted = f"l[{numbers[place]}]" if place else searched[_path(field)]
    if field.type != "path":
        return f"{extracted}::VARCHAR"
    path = _path(field)
    reckons = path.function not in ("", "keys")
    return f"to_json({_function_sql(path, extracted)})::VARCHAR" if reckons else f"{extracted}::VARCHAR"


def _field_digits(field: FlattenField, digits: Mapping[JsonPath, str]) -> str:
    path = _duckdb_path(field)
    return "" if path is None else _path_digits(path, digits)


def _path_digits(path: JsonPath, digits: Mapping[JsonPath, str]) -> str:
    return f"{digits[path]}, " if path in digits else ""


def _top_level_path(name: str) -> JsonPath:
    return JsonPath((Step("name", name),))


def _function_sql(path: JsonPath, extracted: str) -> str:
    if path.function == "length":
        kinds = f"'ARRAY' THEN json_array_length({extracted}) WHEN 'OBJECT' THEN len(json_keys({extracted}))"
        return f"CASE json_type({extracted}) WHEN {kinds} END"
    number_list = (
        f"list_filter(json_extract({extracted}, '$[*]'), lambda x: json_type(x) IN ('UBIGINT', 'BIGINT', 'DOUBLE'))"
    )
    numbers = f"list_transform({number_list}, lambda x: TRY_CAST(x AS DOUBLE))"
    return _STDDEV.format(numbers) if path.function == "stddev" else f"list_aggregate({numbers}, '{path.function}')"


def _path_text(steps: Steps) -> str:
    """The path as DuckDB reads it; names hold no quotes and no backslashes."""
    return "$" + "".join(f'."{s.name}"' if s.kind == "name" else f"[{s.name}]" for s in steps)
