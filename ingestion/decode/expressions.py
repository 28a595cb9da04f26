"""Expressions of a spec, one scalar expression each, over a record's fields: in Druid's language, or in DuckDB's SQL.

Of Druid's (``druid_parser``) what SQL can say is made SQL of, for each kind of arguments anew (``druid_to_sql``);
the rest is evaluated record by record (``druid_evaluator``).

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from ingestion.decode import druid_parser, druid_to_sql
from ingestion.decode.bounded_parser import TooDeep, TooManySteps, parse_bounded
from ingestion.decode.druid_evaluator import Evaluator, check
from ingestion.decode.engine import Engine, sql_literal
from ingestion.decode.expression_size import ExpressionCost, TooLarge, measure
from ingestion.decode.scalar_functions import ALLOWED
from ingestion.decode.value_kinds import BEYOND, BOOLEAN, JSON, LONG, NULL, STRING, TYPED
from ingestion.rows import TIME

_MAX_STEPS = 100_000
_DEEPEST = 30  # brackets in one another: far from where Python's stack ends, however deep it is already
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


class BadExpression(ValueError):
    """The expression can't be taken; the message says why and shows it."""


@dataclass(frozen=True)
class CompiledSql:
    """An expression as it is run: SQL over the columns c0, c1, and so on."""

    sql: str
    measured: ExpressionCost


class Expression(Protocol):
    """``columns``: the fields it reads, ``__time`` among them; in SQL they are c0, c1, and so on."""

    @property
    def text(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def evaluator(self) -> Evaluator | None:
        """What evaluates it record by record, where there is no SQL for it or that fails."""
        ...

    def column(self, name: str, kind: int, field: str) -> str:
        """A column in SQL, of the JSON text that the SQL ``field`` holds."""
        ...

    def rare(self, kind: int) -> int:
        """The kind that this one is taken for where a batch holds more combinations of kinds than are told apart."""
        ...

    def form(self, kinds: Mapping[str, int]) -> CompiledSql | None:
        """What is run for fields of these kinds; None where it makes no sense for them. Raises ``BadExpression``."""
        ...


@dataclass(frozen=True)
class SqlExpression:
    text: str
    columns: tuple[str, ...]
    the_form: CompiledSql

    @property
    def evaluator(self) -> Evaluator | None:
        return None

    def column(self, name: str, kind: int, field: str) -> str:
        return "epoch_ms(ms)" if name == TIME else TYPED.get(kind, "NULL").format(field)

    def rare(self, kind: int) -> int:
        return kind if kind in (NULL, BEYOND) else STRING

    def form(self, kinds: Mapping[str, int]) -> CompiledSql | None:
        return self.the_form


@dataclass(frozen=True)
class DruidExpression:
    """An expression in Druid's language, ready to be compiled for the kinds of a batch."""

    text: str
    columns: tuple[str, ...]
    tree: druid_parser.Node
    engine: Engine
    condition: bool  # only whether it is true is asked
    evaluator: Evaluator

    def column(self, name: str, kind: int, field: str) -> str:
        if name == TIME:
            return "ms"
        return f"CAST({field} = 'true' AS BIGINT)" if kind == BOOLEAN else TYPED[kind].format(field)

    def rare(self, kind: int) -> int:
        return BEYOND  # there is no SQL for it then

    def form(self, kinds: Mapping[str, int]) -> CompiledSql | None:
        if BEYOND in kinds.values() or any(kinds.get(name) == JSON for name in self.evaluator.plain):
            return None
        places = {name: f"c{i}" for i, name in enumerate(self.columns)}
        try:
            typed = druid_to_sql.translate(self.tree, {**kinds, TIME: LONG}, places)
            sql = (druid_to_sql.filter_sql if self.condition else druid_to_sql.transform_sql)(typed)
            return _compile_sql(self.text, sql, len(self.columns), self.engine)
        except (druid_to_sql.NotTranslatable, BadExpression):
            return None


def parse_expression(text: str, engine: Engine, language: str = "sql", condition: bool = False) -> Expression:
    """Take an expression apart and check it. Raises ``BadExpression``."""
    return _parse_druid_text(text, engine, condition) if language == "druid" else _parse_sql_text(text, engine)


def _parse_druid_text(text: str, engine: Engine, condition: bool) -> Expression:
    try:
        tree = druid_parser.parse_druid(text, check)
        evaluator = Evaluator(tree, condition)
    except druid_parser.NotSupported as error:
        raise BadExpression(f"{error}: {shorten(text)}") from None
    return DruidExpression(text, druid_parser.fields_of(tree), tree, engine, condition, evaluator)


def _parse_sql_text(text: str, engine: Engine) -> Expression:
    try:
        tree = _parse_tree(text)
        _refuse_named(tree)
        columns = _rename_columns(tree)
        return SqlExpression(
            text, columns, _compile_sql(text, tree.sql(dialect="duckdb", comments=False), len(columns), engine)
        )
    except BadExpression:
        raise
    except TooLarge as error:
        raise BadExpression(f"{error}: {shorten(text)}") from None
    except Exception as error:  # sqlglot meets odd text with any error at all
        raise BadExpression(f"the expression can't be read: {shorten(text)}") from error


def _compile_sql(text: str, sql: str, columns: int, engine: Engine) -> CompiledSql:
    try:
        return CompiledSql(sql, measure(_duckdb_tree(text, sql, {f"c{i}" for i in range(columns)}, engine)))
    except TooLarge as error:
        raise BadExpression(f"{error}: {shorten(text)}") from None


def _parse_tree(text: str) -> exp.Expr:
    try:
        trees = parse_bounded(text, most_steps=_MAX_STEPS, deepest=_DEEPEST)
    except TooDeep:
        raise TooLarge(f"its brackets are nested more than {_DEEPEST} levels deep") from None
    except TooManySteps:
        raise TooLarge("it is too complex: write it with fewer brackets") from None
    if len(trees) != 1 or trees[0] is None:
        raise BadExpression(f"there must be one expression: {shorten(text)}")
    # A root that is replaced (a lone column) needs something above it.
    return exp.Paren(this=trees[0])


def _refuse_named(tree: exp.Expr) -> None:
    for node in tree.walk():
        for kind, name in _NAMED.items():
            if isinstance(node, kind):
                raise BadExpression(f"an expression can't contain {name}: {shorten(node.sql(dialect='duckdb'))}")


def _rename_columns(tree: exp.Expr) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for column in list(tree.find_all(exp.Column)):
        if len(column.parts) > 1 or not isinstance(column.this, exp.Identifier):
            shown = column.sql(dialect="duckdb")
            raise BadExpression(f"put a field's name into double quotes if it contains a dot: {shorten(shown)}")
        column.replace(exp.column(names.setdefault(column.name, f"c{len(names)}")))
    return tuple(names)


def _duckdb_tree(text: str, sql: str, columns: set[str], engine: Engine) -> dict[str, Any]:
    """DuckDB's tree of the expression, every node of it checked."""
    ((answer,),) = engine.execute(f"SELECT json_serialize_sql({sql_literal(f'SELECT {sql}')})").fetchall()
    read = json.loads(answer)
    if read["error"] or len(read["statements"]) != 1:
        raise BadExpression(f"the expression can't be read: {shorten(text)}")
    node = read["statements"][0]["node"]
    is_single_select = node["type"] == "SELECT_NODE" and len(node["select_list"]) == 1
    rest = {k: v for k, v in node.items() if k != "select_list"}
    if (
        not is_single_select
        or any("class" in d for d in _nested_objects(rest))
        or node["from_table"]["type"] != "EMPTY"
    ):
        raise BadExpression(f"it must be a scalar expression: {shorten(text)}")
    for part in _nested_objects(node["select_list"]):
        if "class" in part:
            _check_node(part, columns, text)
    selected: dict[str, Any] = node["select_list"][0]
    return selected


def _nested_objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    if isinstance(node, dict | list):
        for inner in node.values() if isinstance(node, dict) else node:
            yield from _nested_objects(inner)


def _check_node(node: dict[str, Any], columns: set[str], text: str) -> None:
    kind = node["class"]
    if kind == "FUNCTION":
        _check_function(node)
    elif kind not in _CLASSES or (kind == "OPERATOR" and node["type"] not in _OPERATORS):
        raise BadExpression(f"it must be a scalar expression, without {kind.lower()}: {shorten(text)}")
    elif kind == "COLUMN_REF" and (len(node["column_names"]) != 1 or node["column_names"][0] not in columns):
        raise BadExpression(f"{'.'.join(node['column_names'])} can't be used in an expression")


def _check_function(node: dict[str, Any]) -> None:
    name = str(node["function_name"]).lower()
    if name not in ALLOWED or node["schema"] or node["catalog"]:
        raise BadExpression(f"function {name!r} is not supported in expressions")
    if node["distinct"] or node["filter"] or node["order_bys"]["orders"]:
        raise BadExpression(f"{name!r} takes no DISTINCT, FILTER or ORDER BY here")


def shorten(text: str) -> str:
    """A text as messages show it."""
    return text if len(text) <= 100 else text[:100] + "…"
