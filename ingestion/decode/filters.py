# ruff: noqa: S608 - the SQL is built of constants; field names pass through engine.pointer, values are bound
"""Druid's filters as one DuckDB predicate over a record's fields.

The meaning is that of Druid 33. Of null a filter that compares says nothing, so that neither it nor its ``not``
matches; ``bound`` and ``null`` say something always. A field is missing or null alike. A list matches where one of its
values does; a null in it is the text ``null``. Values are compared as text, a number in its shortest form: 1.50 is 1.5;
objects as their JSON text. ``selector``, ``in`` and ``equals`` compare a number of a record's as a number, also with a
text that is one: 2.0 is ``"2"``. ``__time`` is the row's time in milliseconds.

- ``bound`` sorts null below everything: without ``lower`` it matches null. With ``ordering: numeric`` what is no
  number sorts below all numbers, as in Druid.
- ``equals`` with a number compares numbers, otherwise text; it never matches null. ``like`` never matches null.

The filter's values are columns of a one-row table, bound as parameters: none is ever part of the SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import CANDIDATES, Engine, sql_json_pointer
from ingestion.decode.fields import Mask
from ingestion.decode.numbers import NUMBER_PATTERN
from ingestion.rows import TIME
from ingestion.specs.schema.filters import (
    AndFilter,
    ArrayContainsElementFilter,
    BoundFilter,
    ColumnComparisonFilter,
    EqualsFilter,
    ExpressionFilter,
    FalseFilter,
    Filter,
    InFilter,
    IntervalFilter,
    InTypeFilter,
    IsFalseFilter,
    IsTrueFilter,
    LeafFilter,
    LikeFilter,
    NotFilter,
    NullFilter,
    OrFilter,
    RangeFilter,
    RegexFilter,
    Scalar,
    SearchFilter,
    SelectorFilter,
    TrueFilter,
)

_numbers = count()
_EXACT_DOUBLE = 2**53
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?)([fFdD]?)", re.ASCII)
_LONGEST_NUMBER = 400
ToPredicate = Callable[[str], str]


class FilterRunner:
    """A compiled filter.

    ``fields``: which fields it looks at. Of these ``expressions`` (name → condition) are no record's: what is matched
    has to hold true there where the expression is.
    """

    def __init__(self, engine: Engine, condition: Filter) -> None:
        self._engine = engine
        arguments = f"filter_arguments_{next(_numbers)}"
        compiler = _Compiler(engine)
        predicate = compiler.predicate(condition)
        compiler.lists = True
        list_predicate = compiler.predicate(condition)
        compiler.make_arguments(arguments)
        self.fields = compiler.fields
        self.expressions = compiler.expressions
        from_clause = f"FROM ({{}}) AS r, {arguments} AS a"
        self._sql = f"SELECT coalesce({predicate}, FALSE) AS keep {from_clause.format(compiler.source(lists=False))}"
        self._sql_of_lists = (
            f"SELECT coalesce({list_predicate}, FALSE) AS keep {from_clause.format(compiler.source(lists=True))}"
        )

    def matches(self, texts: pa.Array, ms: pa.Array) -> Mask:
        """Which records match; every text is a JSON object."""
        lists = pc.any(pc.match_substring(texts, "[")).as_py()
        sql = self._sql_of_lists if lists else self._sql
        answer = self._engine.run(sql, CANDIDATES, pa.table({"j": texts, "ms": ms}))
        return answer.column(0).to_numpy().astype(bool, copy=False)  # type: ignore[no-any-return]  # pyarrow has no types


class _Compiler:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fields: dict[str, str] = {}
        self._arguments: list[Any] = []
        self._types: list[str] = []
        self.expressions: dict[str, ExpressionFilter | LeafFilter] = {}
        self.lists = False  # whether fields may be lists
        self._by_kind = False  # whether a field's kind of JSON value is asked for

    @property
    def fields(self) -> list[str]:
        """The fields in question."""
        return list(self._fields)

    def predicate(self, condition: Filter) -> str:
        """SQL that is true or false, or null where nothing is known."""
        return f"({self._BY_TYPE[type(condition)](self, condition)})"

    def make_arguments(self, table: str) -> None:
        """Create the one-row ``table`` with the values."""
        columns = ["0 AS nothing", *(f"?::{kind} AS p{i}" for i, kind in enumerate(self._types))]
        self._engine.execute(f"CREATE TEMP TABLE {table} AS SELECT {', '.join(columns)}", self._arguments)

    def source(self, lists: bool) -> str:
        """SQL that gives the fields in question as text, and of ``lists`` the values."""
        if not self._fields:
            return "SELECT ms FROM candidates"
        paths = ", ".join(sql_json_pointer(name) for name in self._fields)
        texts = f"json_extract_string(j, [{paths}]) AS f"
        if self._by_kind:
            texts += f", json_type(j, [{paths}]) AS k"
        if not lists:
            return f"SELECT {texts}, ms FROM candidates"
        values = "CASE WHEN json_type(x) = 'ARRAY' THEN CASE WHEN json_array_length(x) > 0 THEN " + (
            "[coalesce(v, 'null') for v in json_extract_string(x, '$[*]')] ELSE [NULL] END END"
        )
        return f"SELECT {texts}, [{values} for x in json_extract(j, [{paths}])] AS l, ms FROM candidates"

    def _any_of(self, name: str, says: ToPredicate, says_in_list: ToPredicate | None = None) -> str:
        """What ``says`` of the field's value; of a list whether it says so of one of its values."""
        field = self._field(name)
        if not self.lists or name == TIME:
            return says(field)
        values = field.replace("r.f", "r.l")
        element_sql = (says_in_list or says)("v")
        return f"CASE WHEN {values} IS NULL THEN {says(field)} ELSE list_bool_or([{element_sql} for v in {values}]) END"

    def _field(self, name: str) -> str:
        if name == TIME:
            return "r.ms::VARCHAR"
        if name not in self._fields:
            self._fields[name] = f"r.f[{len(self._fields) + 1}]"
        return self._fields[name]

    def _number(self, field: str) -> str:
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
        value = condition.value
        return self._is_null(condition.dimension) if value is None else self._same_text(condition.dimension, value)

    def _is_null(self, name: str) -> str:
        return self._any_of(name, lambda field: f"{field} IS NULL")

    def _same_text(self, name: str, value: Scalar) -> str:
        return self._any_of(name, *self._in_values(name, [value]))

    def _in_values(self, name: str, values: Sequence[Scalar]) -> tuple[ToPredicate, ToPredicate]:
        """Whether a field is one of the values; and whether something in a list is, where numbers are texts."""
        written = [self._text(v) for v in values]
        texts = self._argument(written, "VARCHAR[]")
        doubles, longs = _as_doubles(written), _as_longs(written)

        def as_text(field: str) -> str:
            return f"list_contains({texts}, {field})"

        if not doubles:
            return as_text, as_text
        kind = self._kind(name)
        in_doubles = f"list_contains({self._argument(doubles, 'DOUBLE[]')}, TRY_CAST({{0}} AS DOUBLE))"
        in_longs = f"list_contains({self._argument(longs, 'HUGEINT[]')}, TRY_CAST({{0}} AS HUGEINT))"
        is_integer = f"{kind} IN ('BIGINT', 'UBIGINT')"
        either = (
            f"CASE WHEN {kind} = 'DOUBLE' THEN {in_doubles} WHEN {is_integer} THEN {in_longs} ELSE {as_text('{0}')} END"
        )
        return either.format, as_text

    def _kind(self, name: str) -> str:
        """Which kind of JSON value a field is."""
        self._by_kind |= name != TIME
        return "'BIGINT'" if name == TIME else self._field(name).replace("r.f", "r.k")

    def _equals(self, condition: EqualsFilter) -> str:
        return self._equal(condition.column, condition.matchValue, (condition.matchValueType or "").upper())

    def _contains(self, condition: ArrayContainsElementFilter) -> str:
        return self._equal(condition.column, condition.elementMatchValue, condition.elementMatchValueType)

    def _equal(self, column: str, value: Scalar, kind: str) -> str:
        numeric = kind in ("LONG", "DOUBLE", "FLOAT") or (not kind and not isinstance(value, str | bool))
        number = _as_number(value) if numeric else None
        if number is None or abs(number) > _EXACT_DOUBLE:
            return self._same_text(column, value)
        argument = self._argument(number, "DOUBLE")

        def says(field: str) -> str:
            return f"CASE WHEN {field} IS NOT NULL THEN coalesce({self._number(field)} = {argument}, FALSE) END"

        return self._any_of(column, says)

    def _null(self, condition: NullFilter) -> str:
        return self._is_null(condition.column)

    def _in(self, condition: InFilter) -> str:
        null = "{0} IS NULL OR " if None in condition.values else ""
        membership = self._in_values(condition.dimension, [v for v in condition.values if v is not None])
        says, says_in_list = ((lambda field, k=k: f"({null.format(field)}{k(field)})") for k in membership)
        return self._any_of(condition.dimension, says, says_in_list)

    def _in_type(self, condition: InTypeFilter) -> str:
        values = [v for v in condition.values if v is not None]
        null = "WHEN {0} IS NULL THEN TRUE " if None in condition.values else ""
        if condition.matchValueType == "STRING":
            membership = self._in_values(condition.column, values)
        else:
            among = f"coalesce(list_contains({self._argument(values, 'DOUBLE[]')}, {self._number('{0}')}), FALSE)"
            membership = among.format, among.format
        says = f"CASE {null}WHEN {{0}} IS NOT NULL THEN {{1}} END"
        return self._any_of(condition.column, *((lambda field, k=k: says.format(field, k(field))) for k in membership))

    def _like(self, condition: LikeFilter) -> str:
        pattern = self._argument(_like_pattern(condition.pattern, condition.escape))
        return self._any_of(condition.dimension, lambda field: f"{field} LIKE {pattern} ESCAPE '\\'")

    def _bound(self, condition: BoundFilter) -> str:
        sides: list[Callable[[str], str]] = []
        if condition.lower is not None:
            sides.append(self._above(condition, condition.lower))
        if condition.upper is not None:
            below = self._below(condition, condition.upper)
            sides.append(lambda field: f"({field} IS NULL OR {below(field)})")
        if not sides:
            return "TRUE"
        return self._any_of(
            condition.dimension, lambda field: f"coalesce({' AND '.join(side(field) for side in sides)}, FALSE)"
        )

    def _above(self, condition: BoundFilter, bound: Scalar) -> Callable[[str], str]:
        sign = ">" if condition.lowerStrict else ">="
        value = _as_number(bound) if condition.ordering == "numeric" else None
        argument = self._argument(self._text(bound)) if value is None else self._argument(value, "DOUBLE")
        if condition.ordering == "lexicographic":
            return lambda field: f"{field} {sign} {argument}"
        if condition.ordering == "strlen":
            return self._by_length(sign, argument, self._text(bound))
        if value is not None:
            return lambda field: f"{self._number(field)} {sign} {argument}"
        return lambda field: f"({self._number(field)} IS NOT NULL OR {field} {sign} {argument})"

    def _below(self, condition: BoundFilter, bound: Scalar) -> Callable[[str], str]:
        sign = "<" if condition.upperStrict else "<="
        value = _as_number(bound) if condition.ordering == "numeric" else None
        argument = self._argument(self._text(bound)) if value is None else self._argument(value, "DOUBLE")
        if condition.ordering == "lexicographic":
            return lambda field: f"{field} {sign} {argument}"
        if condition.ordering == "strlen":
            return self._by_length(sign, argument, self._text(bound))
        if value is not None:
            return lambda field: f"({self._number(field)} IS NULL OR {self._number(field)} {sign} {argument})"
        return lambda field: f"({self._number(field)} IS NULL AND {field} {sign} {argument})"

    def _by_length(self, sign: str, argument: str, bound: str) -> Callable[[str], str]:
        """By how many characters of UTF-16 a text has; those of one length by their order."""
        length = self._argument(len(bound.encode("utf-16-le")) // 2, "BIGINT")

        def says(field: str) -> str:
            field_length = f"length({field}) + length(regexp_replace({field}, '[\\x00-\\x{{FFFF}}]', '', 'g'))"
            return f"({field_length} {sign[0]} {length} OR ({field_length} = {length} AND {field} {sign} {argument}))"

        return says

    def _expression(self, condition: ExpressionFilter | LeafFilter) -> str:
        names = (name for name, other in self.expressions.items() if other is condition)
        # No field that a filter names is called so by chance.
        name = next(names, f"\0expression {len(self.expressions)}")
        self.expressions[name] = condition
        says = f"{self._field(name)} = 'true'"
        in_sql = isinstance(condition, ExpressionFilter) and condition.language == "sql"
        return f"coalesce({says}, FALSE)" if in_sql else says

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
        RegexFilter: _expression,
        SearchFilter: _expression,
        IntervalFilter: _expression,
        ColumnComparisonFilter: _expression,
        RangeFilter: _expression,
        TrueFilter: lambda _self, _condition: "TRUE",
        FalseFilter: lambda _self, _condition: "FALSE",
        AndFilter: lambda self, condition: self._all(condition.fields, "AND"),
        OrFilter: lambda self, condition: self._all(condition.fields, "OR"),
        InTypeFilter: _in_type,
        ArrayContainsElementFilter: _contains,
        IsTrueFilter: lambda self, condition: f"coalesce({self.predicate(condition.field)}, FALSE)",
        IsFalseFilter: lambda self, condition: f"coalesce(NOT {self.predicate(condition.field)}, FALSE)",
        NotFilter: lambda self, condition: f"NOT {self.predicate(condition.field)}",
    }


def _like_pattern(pattern: str, escape: str | None) -> str:
    """The pattern with a backslash as escape. An escape at the end means nothing, as in Druid; DuckDB refuses it."""
    out, is_escaped = [], False
    for char in pattern:
        if char == escape and not is_escaped:
            is_escaped = True
            continue
        out.append("\\" + char if char == "\\" or (is_escaped and char in "%_") else char)
        is_escaped = False
    return "".join(out)


def _as_doubles(texts: Sequence[str]) -> list[float]:
    """The numbers among the texts, as Java reads a double."""
    matches = (_NUMBER.fullmatch(text) for text in texts if len(text) <= _LONGEST_NUMBER)
    return [float(match[1]) for match in matches if match]


def _as_longs(texts: Sequence[str]) -> list[int]:
    """The whole numbers of 64 bits among the texts, also those written as 2.0."""
    matches = (_NUMBER.fullmatch(text) for text in texts if len(text) <= _LONGEST_NUMBER)
    numbers = (Decimal(match[1]) for match in matches if match and not match[2])
    return [int(n) for n in numbers if -(2**63) <= n < 2**63 and n == n.to_integral_value()]


def _as_number(value: Scalar) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) != float("inf") and number == number else None
