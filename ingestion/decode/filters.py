# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""Druid's filters as one DuckDB predicate over a record's fields.

The meaning is Druid's classic one: a filter matches or does not, there is no third value, so ``not`` matches wherever
its filter does not, on nulls too. A field is missing or null alike. Values are compared as text (a number in its
shortest form: 1.50 is 1.5); objects and arrays as their JSON text. ``__time`` is the row's time in milliseconds.

- ``bound`` sorts null below everything: without ``lower`` it matches null. With ``ordering: numeric`` what is no
  number sorts below all numbers, as in Druid.
- ``equals`` with a number compares numbers, otherwise text; it never matches null. ``like`` never matches null.

The filter's values are columns of a one-row table, bound as parameters: none is ever part of the SQL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ingestion.decode.columns import NUMBER_PATTERN
from ingestion.decode.engine import CANDIDATES, Engine, pointer
from ingestion.decode.fields import Mask
from ingestion.rows import TIME
from ingestion.specs import Filter
from ingestion.specs.filters import (
    AndFilter,
    BoundFilter,
    EqualsFilter,
    ExpressionFilter,
    FalseFilter,
    InFilter,
    LikeFilter,
    NotFilter,
    NullFilter,
    OrFilter,
    Scalar,
    SelectorFilter,
    TrueFilter,
)

_ARGUMENTS = "filter_arguments"
_EXACT_DOUBLE = 2**53


class FilterRunner:
    """A compiled filter.

    ``fields``: which fields it looks at. Of these ``expressions`` (name → condition) are no record's: what is matched
    has to hold true there where the expression is.
    """

    def __init__(self, engine: Engine, condition: Filter) -> None:
        self._engine = engine
        compiler = _Compiler(engine)
        predicate = compiler.predicate(condition)
        compiler.make_arguments()
        self.fields = compiler.fields
        self.expressions = compiler.expressions
        self._sql = f"SELECT {predicate} AS keep FROM ({compiler.source()}) AS r, {_ARGUMENTS} AS a"

    def matches(self, texts: pa.Array, ms: pa.Array) -> Mask:
        """Which records match; every text is a JSON object."""
        answer = self._engine.run(self._sql, CANDIDATES, pa.table({"j": texts, "ms": ms}))
        return answer.column(0).to_numpy().astype(bool, copy=False)  # type: ignore[no-any-return]  # pyarrow has no types


class _Compiler:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fields: dict[str, str] = {}
        self._arguments: list[Any] = []
        self._types: list[str] = []
        self.expressions: dict[str, ExpressionFilter] = {}

    @property
    def fields(self) -> list[str]:
        """The fields in question."""
        return list(self._fields)

    def predicate(self, condition: Filter) -> str:
        """SQL that is true or false, never null."""
        compiled = self._BY_TYPE[type(condition)]
        return f"coalesce({compiled(self, condition)}, FALSE)"

    def make_arguments(self) -> None:
        """Create the one-row table with the values."""
        columns = ["0 AS nothing", *(f"?::{kind} AS p{i}" for i, kind in enumerate(self._types))]
        self._engine.execute(f"CREATE TEMP TABLE {_ARGUMENTS} AS SELECT {', '.join(columns)}", self._arguments)

    def source(self) -> str:
        """SQL that gives the fields in question as text."""
        if not self._fields:
            return "SELECT ms FROM candidates"
        paths = ", ".join(pointer(name) for name in self._fields)
        return f"SELECT json_extract_string(j, [{paths}]) AS f, ms FROM candidates"

    def _field(self, name: str) -> str:
        if name == TIME:
            return "r.ms::VARCHAR"
        if name not in self._fields:
            self._fields[name] = f"r.f[{len(self._fields) + 1}]"
        return self._fields[name]

    def _number(self, name: str) -> str:
        field = self._field(name)
        return f"CASE WHEN regexp_full_match({field}, {NUMBER_PATTERN}) THEN TRY_CAST({field} AS DOUBLE) END"

    def _argument(self, value: Any, kind: str = "VARCHAR") -> str:
        self._arguments.append(value)
        self._types.append(kind)
        return f"a.p{len(self._arguments) - 1}"

    def _text(self, value: Scalar) -> str:
        """A value's text as a record's would be written: strings as they are, numbers in DuckDB's shortest form."""
        if isinstance(value, str):
            return value
        row = self._engine.execute("SELECT json_extract_string(?::VARCHAR, '$')", [json.dumps(value)]).fetchone()
        return str(row[0]) if row else ""

    def _selector(self, condition: SelectorFilter) -> str:
        field = self._field(condition.dimension)
        return f"{field} IS NULL" if condition.value is None else self._same_text(field, condition.value)

    def _same_text(self, field: str, value: Scalar) -> str:
        return f"{field} = {self._argument(self._text(value))}"

    def _equals(self, condition: EqualsFilter) -> str:
        value, kind = condition.matchValue, (condition.matchValueType or "").upper()
        numeric = kind in ("LONG", "DOUBLE", "FLOAT") or (not kind and not isinstance(value, str | bool))
        number = _as_number(value) if numeric else None
        if number is None or abs(number) > _EXACT_DOUBLE:
            return self._same_text(self._field(condition.column), value)
        return f"{self._number(condition.column)} = {self._argument(number, 'DOUBLE')}"

    def _null(self, condition: NullFilter) -> str:
        return f"{self._field(condition.column)} IS NULL"

    def _in(self, condition: InFilter) -> str:
        field = self._field(condition.dimension)
        texts = [self._text(v) for v in condition.values if v is not None]
        listed = f"list_contains({self._argument(texts, 'VARCHAR[]')}, {field})"
        return f"({field} IS NULL OR {listed})" if None in condition.values else listed

    def _like(self, condition: LikeFilter) -> str:
        pattern = _pattern(condition.pattern, condition.escape)
        return f"{self._field(condition.dimension)} LIKE {self._argument(pattern)} ESCAPE '\\'"

    def _bound(self, condition: BoundFilter) -> str:
        field = self._field(condition.dimension)
        sides = []
        if condition.lower is not None:
            sides.append(self._above(condition, condition.lower))
        if condition.upper is not None:
            sides.append(f"({field} IS NULL OR {self._below(condition, condition.upper)})")
        return f"({' AND '.join(sides)})" if sides else "TRUE"

    def _above(self, condition: BoundFilter, bound: Scalar) -> str:
        sign = ">" if condition.lowerStrict else ">="
        field, number = self._field(condition.dimension), self._number(condition.dimension)
        value = _as_number(bound)
        if condition.ordering == "lexicographic":
            return f"{field} {sign} {self._argument(self._text(bound))}"
        if value is not None:
            return f"{number} {sign} {self._argument(value, 'DOUBLE')}"
        return f"({number} IS NOT NULL OR {field} {sign} {self._argument(self._text(bound))})"

    def _below(self, condition: BoundFilter, bound: Scalar) -> str:
        sign = "<" if condition.upperStrict else "<="
        field, number = self._field(condition.dimension), self._number(condition.dimension)
        value = _as_number(bound)
        if condition.ordering == "lexicographic":
            return f"{field} {sign} {self._argument(self._text(bound))}"
        if value is not None:
            return f"({number} IS NULL OR {number} {sign} {self._argument(value, 'DOUBLE')})"
        return f"({number} IS NULL AND {field} {sign} {self._argument(self._text(bound))})"

    def _expression(self, condition: ExpressionFilter) -> str:
        name = f"\0expression {len(self.expressions)}"  # no field that a filter names is called so by chance
        self.expressions[name] = condition
        return f"{self._field(name)} = 'true'"

    def _all(self, conditions: Sequence[Filter], word: str) -> str:
        return "(" + f" {word} ".join(self.predicate(c) for c in conditions) + ")"

    _BY_TYPE: dict[type, Callable[[_Compiler, Any], str]] = {
        SelectorFilter: _selector,
        EqualsFilter: _equals,
        NullFilter: _null,
        InFilter: _in,
        LikeFilter: _like,
        ExpressionFilter: _expression,
        BoundFilter: _bound,
        TrueFilter: lambda _self, _condition: "TRUE",
        FalseFilter: lambda _self, _condition: "FALSE",
        AndFilter: lambda self, condition: self._all(condition.fields, "AND"),
        OrFilter: lambda self, condition: self._all(condition.fields, "OR"),
        NotFilter: lambda self, condition: f"NOT {self.predicate(condition.field)}",
    }


def _pattern(pattern: str, escape: str | None) -> str:
    """The pattern with a backslash as escape. An escape at the end means nothing, as in Druid; DuckDB refuses it."""
    out, taken = [], False
    for char in pattern:
        if char == escape and not taken:
            taken = True
            continue
        out.append("\\" + char if char == "\\" or (taken and char in "%_") else char)
        taken = False
    return "".join(out)


def _as_number(value: Scalar) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) != float("inf") and number == number else None
