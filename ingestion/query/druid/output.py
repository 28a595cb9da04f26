"""A result in Druid's formats, a chunk at a time."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from ingestion.decode.druid_values import number_text
from ingestion.query.output import finite, rows_of
from ingestion.specs.messages.sql import DruidStatement


def chunks(asked: DruidStatement, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The result in the form that ``asked`` names. Lines end with an empty one: then a client has all."""
    names, values = list(schema.names), _Values(asked)
    headers = _headers(asked, names, schema)
    rows = ([[values.value(v) for v in row] for row in rows_of(batch)] for batch in batches)
    written = _csv(headers, rows) if asked.result_format == "csv" else _json(asked, names, headers, rows)
    for text in written:
        yield text.encode(errors="replace")


def _headers(asked: DruidStatement, names: Sequence[str], schema: pa.Schema) -> list[list[str]]:
    """The lines before the rows: names, Druid's types, SQL's types."""
    if not asked.header:
        return []
    types = [_types(field.type) for field in schema]
    wanted = [(True, list(names)), (asked.types_header, [t[0] for t in types])]
    wanted.append((asked.sql_types_header, [t[1] for t in types]))
    return [line if is_wanted else [] for is_wanted, line in wanted]


def _types(kind: pa.DataType) -> tuple[str, str]:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "LONG", "TIMESTAMP"
    if pa.types.is_int64(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return "LONG", "BIGINT"
    if pa.types.is_integer(kind):
        return "LONG", "INTEGER"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "DOUBLE", "DOUBLE"
    if pa.types.is_boolean(kind):
        return "LONG", "BOOLEAN"
    if pa.types.is_list(kind):
        return f"ARRAY<{_types(kind.value_type)[0]}>", "ARRAY"
    return "STRING", "VARCHAR"


class _Values:
    """Values as JSON has them: times with the zone's offset, lists as texts if they are wanted so."""

    def __init__(self, asked: DruidStatement) -> None:
        self._zone = ZoneInfo(asked.zone)
        self._lists_as_text = asked.lists_as_text

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            inner = [self.value(part) for part in value]
            return _text(inner) if self._lists_as_text else inner
        if isinstance(value, datetime):
            return value.astimezone(self._zone).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if isinstance(value, date):
            return f"{value.isoformat()}T00:00:00.000Z"
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else float(value)
        if isinstance(value, float) and not math.isfinite(value):
            return finite(value)
        if isinstance(value, bytes):  # a sketch
            return json.dumps(base64.b64encode(value).decode())
        return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _csv(headers: list[list[str]], batches: Iterable[list[list[Any]]]) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(line for line in headers if line)
    for rows in batches:
        writer.writerows([_cell(value) for value in row] for row in rows)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue() + "\n"


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, float) else value


def _json(
    asked: DruidStatement, names: Sequence[str], headers: list[list[str]], batches: Iterable[list[list[Any]]]
) -> Iterator[str]:
    """Rows as objects or arrays, in one array or on lines."""
    as_objects = asked.result_format.startswith("object")
    opening, comma, end = ("", "\n", "\n\n") if asked.result_format.endswith("Lines") else ("[", ",", "]\n")
    described = [_described(names, *headers[1:])] if as_objects and headers else [line for line in headers if line]
    before, texts = opening, [_text(line) for line in described]
    for rows in batches:
        texts += [_text(dict(zip(names, row, strict=True)) if as_objects else row) for row in rows]
        if texts:
            yield before + comma.join(texts)
            before, texts = comma, []
    yield (before + comma.join(texts) if before == opening else "") + end


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _described(names: Sequence[str], types: list[str], sql_types: list[str]) -> dict[str, Any]:
    """A header among objects: the types by column, null if they are not wanted."""
    found: dict[str, Any] = {}
    for place, name in enumerate(names):
        described = ({"type": types[place]} if types else {}) | ({"sqlType": sql_types[place]} if sql_types else {})
        found[name] = described or None
    return found
