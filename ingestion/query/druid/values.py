"""Kinds of values, which decide what an operator of Druid's means, and small helpers of the rewriting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from sqlglot import exp, parse_one

from ingestion.query.statement import Refused as Refused

_Sketch = Literal["hll", "theta", "quantiles", "sketch", "sketches"]
# ``mv``: a dimension of several values; ``array``: a value that is one list; empty: not known yet. See ``sketches``.
Kind = Literal["", "long", "double", "text", "boolean", "time", "mv", "array", "json", "interval", "null", _Sketch]
SpecialFunction = Callable[[list[exp.Expr], str], exp.Expr]  # its arguments, and the query's time zone
_KINDS: dict[str, Kind] = {"VARCHAR": "text", "BIGINT": "long", "DOUBLE": "double", "BOOLEAN": "boolean"}
_KINDS |= {"TIMESTAMPTZ": "time", "VARCHAR[]": "mv", "BLOB": "sketch"}


def kind_of_type(name: str) -> Kind:
    """The kind of a column, by DuckDB's name of its type."""
    return _KINDS.get(name, "")


def of_kind(kind: Kind, node: exp.Expr) -> exp.Expr:
    node.meta["kind"] = kind
    return node


def kind_of(node: exp.Expr) -> Kind:
    return cast("Kind", node.meta.get("kind", ""))


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def text(value: str) -> str:
    """A text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def literal_text(node: exp.Expr, what: str) -> str:
    """Raises ``Refused`` if it is no literal."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise Refused(f"{what.capitalize()} must be a text literal, not {node.sql(dialect='druid')[:100]}.")
    return str(node.this)


def parameter_sql(kind: str, value: Any) -> str:
    """A typed parameter of the request as a literal. Raises ``Refused``."""
    kind = kind.upper()
    if value is None:
        return "NULL"
    if kind in ("VARCHAR", "CHAR") and isinstance(value, str):
        return text(value)
    if kind in ("TIMESTAMP", "DATE") and isinstance(value, (str, int)) and not isinstance(value, bool):
        return f"MILLIS_TO_TIMESTAMP({value})" if isinstance(value, int) else f"{kind} {text(value.replace('T', ' '))}"
    if kind == "BOOLEAN" and isinstance(value, bool):
        return str(value).upper()
    if kind in ("BIGINT", "INTEGER", "SMALLINT", "TINYINT") and isinstance(value, int) and not isinstance(value, bool):
        return f"({value})"
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in ("DOUBLE", "FLOAT", "REAL", "DECIMAL") and is_number:
        return f"CAST({text(repr(float(value)))} AS DOUBLE)"
    raise Refused(f"A parameter of the type {kind} can't be {str(value)[:100]!r}.")


def sql(template: str, **parts: exp.Expr) -> exp.Expr:
    """DuckDB's SQL with trees in the place of these names."""
    tree = exp.Paren(this=parse_one(template, read="duckdb"))
    for column in list(tree.find_all(exp.Column)):
        if column.name in parts and not column.table:
            part = parts[column.name].copy()
            column.replace(exp.Paren(this=part) if isinstance(part, (exp.Binary, exp.Unary)) else part)
    whole = tree.this
    return tree if isinstance(whole, (exp.Binary, exp.Case, exp.Between, exp.Not)) else whole
