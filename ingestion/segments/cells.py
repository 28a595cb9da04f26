"""Rows of segments as cells of a table that people look at: short, in types that JSON has."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from ingestion.segments.names import iso
from ingestion.sketches.description import describe_sketch
from ingestion.specs.messages.newest_rows import MAX_ANSWER, MAX_TEXT, RowsOrder
from ingestion.specs.messages.protocol import Column
from ingestion.specs.schema.metric_base import SketchKind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_TEXT = 16
_TEXT_TYPES = frozenset({"string", "strings", "json"})  # what is cut, and masked
_SKETCHES = frozenset(get_args(SketchKind))
_MASK = {"masked": True}


@dataclass(frozen=True, order=True)
class Row:
    """Ordered by time; of one time, what came first in the order of files and rows is the newer one."""

    time_ms: int
    file: int  # negative
    place: int  # negative
    values: dict[str, Any]


class Cells:
    """How an order's rows are asked for, and what becomes of them."""

    def __init__(self, order: RowsOrder) -> None:
        self._order = order

    def statement(self, address: str, columns: Sequence[Column]) -> tuple[str, list[Any]]:
        """The latest rows of one file: their time, then for each column its value and, of a text, its bytes.

        Columns are known by their place: names may differ in case alone. Beside it, the values it compares with.
        """
        names = [f"c{i}" for i in range(len(columns))]
        longest = self._longest(len(columns))
        values = [v for name, c in zip(names, columns, strict=True) for v in self._values(name, c, longest)]
        time = f"epoch_ms({names[0]})"
        window = [f"{time} >= {self._order.start_ms}"] if self._order.start_ms is not None else []
        window += [f"{time} < {self._order.end_ms}"] if self._order.end_ms is not None else []
        alike = [(name, c) for name, c in zip(names, columns, strict=True) if c.name in self._order.like]
        alike = [(name, c) for name, c in alike if c.type not in ("strings", "json")]
        window += [f"{f'epoch_ms({n})' if c.type == 'timestamp' else n} IS NOT DISTINCT FROM ?" for n, c in alike]
        where = f"WHERE {' AND '.join(window)}" if window else ""
        rows = f"read_parquet('{address}') AS segment({', '.join(names)})"
        latest = f"{where} ORDER BY {names[0]} DESC LIMIT {self._order.limit}"
        statement = f"SELECT {', '.join([time, *values])} FROM {rows} {latest}"  # noqa: S608 - of numbers and our own names
        return statement, [self._order.like[c.name] for _, c in alike]

    def row(self, values: Sequence[Any], columns: Sequence[Column], file: int, row_number: int) -> Row:
        """What the statement gave for one row."""
        longest = self._longest(len(columns))
        pairs = zip(values[1::2], values[2::2], columns, strict=True)
        cells = {column.name: self._cell(value, size, column, longest) for value, size, column in pairs}
        return Row(values[0], -file, -row_number, cells)

    def _longest(self, columns: int) -> int:
        return max(_MIN_TEXT, min(MAX_TEXT, MAX_ANSWER // (self._order.limit * columns)))

    def _values(self, name: str, column: Column, longest: int) -> tuple[str, str]:
        kind = column.type
        if self._order.role_that_sees(column.name):
            return "NULL", "NULL"  # nor whether there is a value
        if kind not in _TEXT_TYPES:
            return (f"epoch_ms({name})" if kind == "timestamp" else name), "NULL"
        if self._order.masked:
            return f"CASE WHEN {name} IS NOT NULL THEN true END", "NULL"
        text = f"CAST({name} AS VARCHAR)" if kind != "strings" else f"CAST(to_json({name}) AS VARCHAR)"
        return f"left({text}, {longest})", f"strlen({text})"

    def _cell(self, value: Any, size: int | None, column: Column, longest: int) -> Any:
        kind = column.type
        if role := self._order.role_that_sees(column.name):
            return {**_MASK, "role": role}
        if value is None:
            return None
        if kind == "timestamp":
            return iso(_EPOCH + timedelta(milliseconds=value))
        if kind == "double":
            return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
        if kind in _SKETCHES:
            return describe_sketch(kind, value)
        if kind not in _TEXT_TYPES:
            return value
        if self._order.masked:
            return _MASK
        if size is not None and len(value) == longest and len(value.encode()) < size:
            return {"start": value, "size_bytes": size}
        return json.loads(value) if kind == "strings" else value
