# ruff: noqa: S608 - the SQL is built of constants and of expressions that were taken apart and checked
"""Expressions of a spec: SQL in DuckDB's dialect, one scalar expression each, over a record's fields.

Two parsers have to agree that an expression is harmless. The first makes of it one tree without subqueries, aggregates,
windows and the like, in which columns get names of our own. What is written out from that tree is parsed by DuckDB
itself, and of DuckDB's tree every node has to be of a known kind, every function on the list of ``scalar_functions``.
It then runs on an ``Engine``, which could do nothing but compute anyhow.

What an expression may cost is bounded before it runs: the steps of the first parser, the tree's nodes and depth, and
what can come out of so many bytes of a record (``expression_size``). Records go through it in so small portions that
neither memory nor a call that can't be interrupted grows with the batch.

A field has in each record the type of its value there: BIGINT, DOUBLE, VARCHAR, BOOLEAN, JSON for objects and arrays,
or NULL; ``__time`` is a TIMESTAMP in UTC. So a record's result is the same whatever records are read with it. Where the
expression makes no sense for the types, or fails on the values, the result is null and the record is told.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import Token, TokenType

from ingestion.decode.columns import Values, first_bytes
from ingestion.decode.engine import Engine, literal
from ingestion.decode.expression_size import Measured, TooLarge, measured
from ingestion.decode.fields import Mask, flat, validity
from ingestion.decode.scalar_functions import ALLOWED
from ingestion.rows import TIME

NULL, LONG, DOUBLE, STRING, BOOLEAN, JSON = range(6)
_TYPED = {
    NULL: "NULL",
    LONG: "CAST({0} AS BIGINT)",
    DOUBLE: "CASE WHEN isfinite(TRY_CAST({0} AS DOUBLE)) THEN TRY_CAST({0} AS DOUBLE) END",
    STRING: "json_extract_string({0}, '$')",
    BOOLEAN: "{0} = 'true'",
    JSON: "CAST({0} AS JSON)",
}
_MOST_COMBINATIONS = 64  # of types in one batch; rarer ones see every field as text
_MOST_PREPARED = 4 * _MOST_COMBINATIONS
_MOST_STEPS = 100_000
_DEEPEST = 30  # brackets in one another: far from where Python's stack ends, however deep it is already
_MADE_AT_ONCE = 0.25  # of the memory that the engine may have
_READ_AT_ONCE = 128 * 1024 * 1024  # bytes that functions go through: a second at worst
_KIND_OF_BYTE = np.full(256, DOUBLE, np.uint8)
_KIND_OF_BYTE[list(b'"tf{[')] = (STRING, BOOLEAN, BOOLEAN, JSON, JSON)
_UNFIT = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
    duckdb.SyntaxException,
)
_NAMED: dict[type[exp.Expr], str] = {
    exp.Query: "a subquery",
    exp.AggFunc: "an aggregate function",
    exp.Window: "a window function",
    exp.UDTF: "a table function",
    exp.Explode: "a table function",
    exp.Star: "*",
    exp.Columns: "COLUMNS(…)",
    exp.Lambda: "a function as an argument",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.Alias: "AS",
}
_CLASSES = {"COLUMN_REF", "CONSTANT", "FUNCTION", "CASE", "CAST", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN"}
_CLASSES |= {"TYPE"}
_OPERATORS = {"OPERATOR_COALESCE", "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_TRY"}
_OPERATORS |= {"OPERATOR_NULLIF", "COMPARE_IN", "COMPARE_NOT_IN", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT"}
_OPERATORS |= {"ARRAY_CONSTRUCTOR"}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_numbers = count()
Lengths = npt.NDArray[np.int64]


class BadExpression(ValueError):
    """The expression can't be taken; the message says why and shows it."""


@dataclass(frozen=True)
class Expression:
    """``sql`` names the fields ``columns`` c0, c1, and so on."""

    text: str
    sql: str
    columns: tuple[str, ...]
    measured: Measured


class _Parser(DuckDBParser):
    """Gives up on what it would try in too many ways: 30 times ``date(`` in itself takes it hours."""

    def __init__(self) -> None:
        super().__init__(dialect=DuckDB())
        self._steps = 0

    def _advance(self, times: int = 1) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooLarge("it is too entangled: write it with fewer brackets")
        super()._advance(times)


def parsed(text: str, engine: Engine) -> Expression:
    """Take an expression apart and check it. Raises ``BadExpression``."""
    try:
        tree = _one_tree(text)
        _refuse_by_name(tree)
        columns = _columns_renamed(tree)
        sql = tree.sql(dialect="duckdb", comments=False)
        selected = _as_duckdb_reads_it(text, sql, {f"c{i}" for i in range(len(columns))}, engine)
        return Expression(text, sql, columns, measured(selected))
    except BadExpression:
        raise
    except TooLarge as error:
        raise BadExpression(f"{error}: {_short(text)}") from None
    except Exception as error:  # sqlglot meets odd text with any error at all
        raise BadExpression(f"the expression can't be read: {_short(text)}") from error


def _one_tree(text: str) -> exp.Expr:
    tokens = DuckDB().tokenize(text)
    _check_brackets(tokens)
    trees = _Parser().parse(tokens, text)
    if len(trees) != 1 or trees[0] is None:
        raise BadExpression(f"there must be one expression: {_short(text)}")
    # A root that is replaced (a lone column) needs something above it.
    return exp.Paren(this=trees[0])


def _check_brackets(tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > _DEEPEST:
            raise TooLarge(f"its brackets are nested more than {_DEEPEST} levels deep")


def _refuse_by_name(tree: exp.Expr) -> None:
    for node in tree.walk():
        for kind, name in _NAMED.items():
            if isinstance(node, kind):
                raise BadExpression(f"an expression can't hold {name}: {_short(node.sql(dialect='duckdb'))}")


def _columns_renamed(tree: exp.Expr) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for column in list(tree.find_all(exp.Column)):
        if len(column.parts) > 1 or not isinstance(column.this, exp.Identifier):
            shown = column.sql(dialect="duckdb")
            raise BadExpression(f"write a field's name between double quotes if it holds a dot: {_short(shown)}")
        column.replace(exp.column(names.setdefault(column.name, f"c{len(names)}")))
    return tuple(names)


def _as_duckdb_reads_it(text: str, sql: str, columns: set[str], engine: Engine) -> dict[str, Any]:
    """DuckDB's tree of the expression, every node of it checked."""
    ((answer,),) = engine.execute(f"SELECT json_serialize_sql({literal(f'SELECT {sql}')})").fetchall()
    read = json.loads(answer)
    if read["error"] or len(read["statements"]) != 1:
        raise BadExpression(f"the expression can't be read: {_short(text)}")
    node = read["statements"][0]["node"]
    bare = node["type"] == "SELECT_NODE" and len(node["select_list"]) == 1
    rest = {k: v for k, v in node.items() if k != "select_list"}
    if not bare or any("class" in d for d in _objects(rest)) or node["from_table"]["type"] != "EMPTY":
        raise BadExpression(f"only a scalar expression is taken: {_short(text)}")
    for found in _objects(node["select_list"]):
        if "class" in found:
            _check_node(found, columns, text)
    selected: dict[str, Any] = node["select_list"][0]
    return selected


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    if isinstance(node, dict | list):
        for inner in node.values() if isinstance(node, dict) else node:
            yield from _objects(inner)


def _check_node(node: dict[str, Any], known: set[str], text: str) -> None:
    kind = node["class"]
    if kind == "FUNCTION":
        _check_function(node)
    elif kind not in _CLASSES or (kind == "OPERATOR" and node["type"] not in _OPERATORS):
        raise BadExpression(f"only a scalar expression is taken, without {kind.lower()}: {_short(text)}")
    elif kind == "COLUMN_REF" and (len(node["column_names"]) != 1 or node["column_names"][0] not in known):
        raise BadExpression(f"{'.'.join(node['column_names'])} can't be used in an expression")


def _check_function(node: dict[str, Any]) -> None:
    name = str(node["function_name"]).lower()
    if name not in ALLOWED or node["schema"] or node["catalog"]:
        raise BadExpression(f"function {name!r} is not among those that an expression may call")
    if node["distinct"] or node["filter"] or node["order_bys"]["orders"]:
        raise BadExpression(f"{name!r} takes no DISTINCT, FILTER or ORDER BY here")


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "…"


@dataclass(frozen=True)
class Results:
    """``texts``: the values as JSON text, null where there is none. ``failed``: where there is none by a failure.

    ``lengths``: of the texts in bytes, also of those that are left out because they are longer than they may be.
    """

    texts: pa.Array
    failed: Mask
    lengths: Lengths

    @classmethod
    def of(cls, texts: pa.Array, failed: Mask, most: Lengths) -> Results:
        """Without the texts that are longer than ``most``."""
        lengths = lengths_of(texts)
        fit = lengths <= most
        return cls(texts if fit.all() else _only(texts, fit), failed, lengths)

    @classmethod
    def joined(cls, parts: Sequence[Results]) -> Results:
        return cls(
            pa.concat_arrays([p.texts for p in parts]),
            np.concatenate([p.failed for p in parts]),
            np.concatenate([p.lengths for p in parts]),
        )

    def taken(self, indexes: Lengths) -> Results:
        return Results(self.texts.take(pa.array(indexes)), self.failed[indexes], self.lengths[indexes])


def lengths_of(texts: pa.Array) -> Lengths:
    """In bytes; of null what it takes in memory, which is usually nothing."""
    if not len(texts):
        return np.empty(0, np.int64)
    places = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(places).astype(np.int64)


def _only(texts: pa.Array, wanted: Mask) -> pa.Array:
    """Null instead of those that are not wanted; nothing of these stays in memory."""
    places = pa.array(np.cumsum(wanted) - 1, mask=~wanted)
    return texts.filter(pa.array(wanted)).take(places)


class ExpressionRunner:
    """An expression, ready to run. Raises ``BadExpression`` if it makes sense for no types at all."""

    def __init__(self, engine: Engine, text: str) -> None:
        self._engine = engine
        self.expression = parsed(text, engine)
        self.fields = [name for name in self.expression.columns if name != TIME]
        self._source = f"expression_fields_{next(_numbers)}"
        schema = pa.schema([(f"f{i}", pa.string()) for i in range(len(self.fields))] + [("ms", pa.int64())])
        engine.register(self._source, schema)
        self._empty = schema.empty_table()
        self._statements: OrderedDict[tuple[int, ...], str] = OrderedDict()
        self._check_for_any_types()

    def run(self, columns: Mapping[str, pa.Array], ms: Lengths, most: Lengths) -> Results:
        """The results for all records; ``columns`` hold the fields as JSON text, ``ms`` the times.

        ``most``: how many bytes are kept of each.
        """
        texts = [Values(columns[name]).texts for name in self.fields]
        table = pa.table([*texts, pa.array(ms, pa.int64())], names=self._empty.column_names)
        if not self.fields or not len(table):
            return self._results(table, most, (NULL,) * len(self.fields))
        kinds = np.stack([_kinds(t) for t in texts], axis=1)
        combinations, which, sizes = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
        if len(combinations) == 1:
            return self._results(table, most, tuple(combinations[0].tolist()))
        frequent = set(np.argsort(-sizes)[:_MOST_COMBINATIONS].tolist())
        parts, places = [], []
        for number, kind in enumerate(combinations.tolist()):
            known = kind if number in frequent else [k and STRING for k in kind]
            place = np.flatnonzero(which.reshape(-1) == number)
            places.append(place)
            parts.append(self._results(table.take(pa.array(place)), most[place], tuple(known)))
        return Results.joined(parts).taken(np.argsort(np.concatenate(places)))

    def _results(self, table: pa.Table, most: Lengths, kinds: tuple[int, ...]) -> Results:
        """Of records whose fields are of these kinds: in portions, where they are large.

        Raises ``MemoryError`` where one record may need more than there is.
        """
        made, read = self.expression.measured.made.of(table), self.expression.measured.read.of(table)
        memory = self._engine.memory_limit_bytes
        if made <= memory * _MADE_AT_ONCE and read <= _READ_AT_ONCE:
            return self._computed(table, most, kinds)
        if len(table) > 1:
            middle = len(table) // 2
            first = self._results(table.slice(0, middle), most[:middle], kinds)
            return Results.joined([first, self._results(table.slice(middle), most[middle:], kinds)])
        if made > memory:
            raise MemoryError(
                f"{_short(self.expression.text)} may need {made:,.0f} bytes for it, of {memory:,} that it may have"
            )
        return self._computed(table, most, kinds)

    def _computed(self, table: pa.Table, most: Lengths, kinds: tuple[int, ...]) -> Results:
        try:
            found = self._engine.run(self._statement(kinds), self._source, table)
        except _UNFIT:
            nothing = pa.nulls(len(table), pa.string())
            return Results(nothing, np.ones(len(table), np.bool_), np.zeros(len(table), np.int64))
        failed = np.asarray(found.column("failed").to_numpy(), np.bool_)
        return Results.of(flat(found.column("v")).cast(pa.string()), failed, most)

    def _statement(self, kinds: tuple[int, ...]) -> str:
        """The SQL for these kinds; the one longest unused is forgotten, for records may bring ever new ones."""
        sql = self._statements.get(kinds)
        if sql is None:
            sql = self._statements[kinds] = self._sql(kinds)
            if len(self._statements) > _MOST_PREPARED:
                self._engine.forget(self._statements.popitem(last=False)[1])
        self._statements.move_to_end(kinds)
        return sql

    def _sql(self, kinds: tuple[int, ...]) -> str:
        """TRY gives null where the expression fails, and a structure that holds null where it is null."""
        typed = {
            name: _TYPED[kind].format(f"f{i}") for i, (name, kind) in enumerate(zip(self.fields, kinds, strict=True))
        }
        typed[TIME] = "epoch_ms(ms)"
        columns = [f"{typed[name]} AS c{i}" for i, name in enumerate(self.expression.columns)]
        inner = f"SELECT {', '.join([*columns, '0 AS nothing'])} FROM {self._source}"
        tried = f"SELECT TRY({{'v': CAST(to_json({self.expression.sql}) AS VARCHAR)}}) AS r FROM ({inner})"
        return f"SELECT r.v AS v, r IS NULL AS failed FROM ({tried})"

    def _check_for_any_types(self) -> None:
        problems = []
        for kind in _TYPED:
            try:
                self._engine.run(self._statement((kind,) * len(self.fields)), self._source, self._empty)
            except _UNFIT as error:
                problems.append(str(error).splitlines()[0])
            else:
                return
        raise BadExpression(f"{_short(self.expression.text)}: {problems[STRING]}")


def _kinds(texts: pa.Array) -> npt.NDArray[np.uint8]:
    kinds = np.full(len(texts), NULL, np.uint8)
    kinds[validity(texts)] = _KIND_OF_BYTE[first_bytes(texts)]
    if (kinds == DOUBLE).any():
        whole = pc.match_substring_regex(texts, "^-?[0-9]{1,18}$").fill_null(False)
        kinds[whole.to_numpy(zero_copy_only=False)] = LONG
    return kinds
