"""A user's statement, read and checked by sqlglot: one SELECT, whose tables get names that nothing else has.

What runs is written from the checked tree, never the user's text. Each table of it has a reserved name: that of a view,
``view_name(0)`` and so on, or that of a CTE. So the names of system tables, files and functions lead nowhere.
``duckdb_tree`` checks the result once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from ingestion.decode.bounded_parser import TooDeep, TooManySteps, parse_bounded
from ingestion.specs.messages.sql import MAX_STATEMENT, Explain

RESERVED = "__headgate_"
MAX_TABLES = 50
MAX_STEPS = 500_000
DEEPEST = 60  # brackets in one another
_EXPLAIN = re.compile(r"\s*explain\b(\s+analyze\b)?", re.IGNORECASE)
# Functions are checked by DuckDB's own names of them, in ``duckdb_tree``.
_EXPRESSIONS: tuple[type[exp.Expr], ...] = (exp.Binary, exp.Unary, exp.Func, exp.Between, exp.In, exp.Is, exp.Exists)
_EXPRESSIONS += (exp.Column, exp.Identifier)
_EXPRESSIONS += (exp.Literal, exp.RawString, exp.Boolean, exp.Null, exp.Star, exp.Alias, exp.Aliases, exp.Tuple)
_EXPRESSIONS += (exp.DataType, exp.DataTypeParam, exp.ColumnDef, exp.Interval, exp.IntervalSpan, exp.Var, exp.Bracket)
_EXPRESSIONS += (exp.Slice, exp.Lambda, exp.PropertyEQ, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_EXPRESSIONS += (exp.Window, exp.WindowSpec, exp.Distinct, exp.Columns, exp.PositionalColumn, exp.JSONPath)
_EXPRESSIONS += (exp.JSONPathPart, exp.AtTimeZone, exp.Unnest, exp.Kwarg)
_CLAUSES: tuple[type[exp.Expr], ...] = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.With, exp.CTE)
_CLAUSES += (exp.Table, exp.TableAlias)
_CLAUSES += (exp.From, exp.Join, exp.Lateral, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered)
_CLAUSES += (exp.Limit, exp.Offset, exp.Cube, exp.Rollup, exp.GroupingSets)
_TABLE_PARTS = {"this", "db", "alias", "joins"}
_TABLE_FUNCTIONS = (exp.GenerateSeries, exp.Unnest)


class Refused(Exception):
    """The statement is wrong, or not allowed. The message says why."""


@dataclass(frozen=True)
class Statement:
    """One that is checked."""

    tree: exp.Expr
    tables: tuple[tuple[str, str], ...]  # team and name as the user has written them, by the numbers of their views
    explain: Explain

    @property
    def sql(self) -> str:
        return self.tree.sql(dialect="duckdb", comments=False)


def view_name(number: int) -> str:
    """The name of a table's view in the SQL that runs."""
    return f"{RESERVED}t{number}"


def read_statement(text: str) -> Statement:
    """Raises ``Refused``."""
    check_text(text)
    found = _EXPLAIN.match(text)
    explain: Explain = "" if found is None else "analyze" if found[1] else "plan"
    rest = text[found.end() :] if found else text
    tree = one_query(lambda: parse_bounded(rest, most_steps=MAX_STEPS, deepest=DEEPEST))
    for node in tree.walk():
        _check(node)
    _rename_ctes(tree)
    return Statement(tree, _rename_tables(tree), explain)


def check_text(text: str) -> None:
    """Raises ``Refused``."""
    if len(text) > MAX_STATEMENT:
        raise Refused(f"The statement has more than {MAX_STATEMENT:,} characters.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("The statement contains characters that are not text.") from None


def one_query(parse: Callable[[], Iterable[exp.Expr | None]]) -> exp.Expr:
    """The only SELECT of what is parsed. Raises ``Refused``."""
    try:
        parsed = parse()
    except Refused:
        raise
    except TooDeep:
        raise Refused(f"Brackets are nested more than {DEEPEST} levels deep.") from None
    except TooManySteps:
        raise Refused("The statement is too complex. Use fewer brackets.") from None
    except SqlglotError as error:
        raise Refused(f"The statement can't be read: {_plain_words(error)}") from None
    except Exception:  # sqlglot meets odd text with any error at all
        raise Refused("The statement can't be read.") from None
    trees = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(trees) != 1:
        raise Refused("Send one statement." if trees else "The statement is empty.")
    [tree] = trees
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        kind = tree.name if isinstance(tree, exp.Command) else tree.key
        raise Refused(f"Only SELECT is allowed, with WITH before it, not {kind.upper()}.")
    return tree


def _plain_words(error: SqlglotError) -> str:
    """What the parser says, without the names of its own classes and tokens."""
    if isinstance(error, TokenError):
        return "A text, a name in quotes or a comment has no end."
    first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    text = str(first.get("description") or "")
    text = re.sub(r"^Required keyword: .*", "A part is missing", text)
    text = re.sub(r"^Expected table name but got .*", "The name of a table is missing", text)
    text = re.sub(r"^Invalid expression / Unexpected token", "A word or a sign is not expected here", text)
    if not text or re.search("<|class|token", text, re.IGNORECASE):
        text = "A part can't be understood"
    return f"{text.removesuffix('.')} (line {first.get('line', 1)}, column {first.get('col', 1)})."


def _check(node: exp.Expr) -> None:
    if not isinstance(node, _EXPRESSIONS + _CLAUSES):
        raise Refused(f"{_words(node)} not allowed: {_shorten(node) or _shorten(node.parent or node)}")
    if isinstance(node, exp.Select) and (node.args.get("into") or node.args.get("sample")):
        raise Refused(f"INTO and SAMPLE are not allowed: {_shorten(node)}")
    if isinstance(node, exp.Table):
        _check_table(node)
    if isinstance(node, exp.Lateral) and not isinstance(node.this, (exp.Subquery, exp.Unnest)):
        raise Refused(f"LATERAL takes a subquery: {_shorten(node)}")
    named = isinstance(node, (exp.CTE, exp.TableAlias, exp.Table))
    if named and (node.alias_or_name.lower().startswith(RESERVED) or node.name.lower().startswith(RESERVED)):
        raise Refused(f"Names that begin with {RESERVED} are reserved.")


def _check_table(node: exp.Table) -> None:
    if isinstance(node.this, _TABLE_FUNCTIONS):
        return
    if not isinstance(node.this, exp.Identifier):
        raise Refused(f"Only datasources can be read, not {_shorten(node)}")
    excess = {name for name, value in node.args.items() if value and name not in _TABLE_PARTS}
    if excess:
        raise Refused(f"A table is written team.datasource or datasource, without more: {_shorten(node)}")


def _rename_ctes(tree: exp.Expr) -> None:
    """Each CTE, and each table without a team that has the name of one. A datasource of this name needs its team."""
    ctes = list(tree.find_all(exp.CTE))
    names = {cte.alias.lower() for cte in ctes}
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and not table.db and table.name.lower() in names:
            _rename(table, f"{RESERVED}c_{table.name.lower()}")
    for cte in ctes:
        cte.args["alias"].set("this", exp.to_identifier(f"{RESERVED}c_{cte.alias.lower()}", quoted=True))


def _rename_tables(tree: exp.Expr) -> tuple[tuple[str, str], ...]:
    tables = []
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and not table.name.startswith(RESERVED):
            tables.append((table.db, table.name))
            _rename(table, view_name(len(tables) - 1))
    if len(tables) > MAX_TABLES:
        raise Refused(f"The statement reads {len(tables)} tables; {MAX_TABLES} are allowed.")
    return tuple(tables)


def _rename(table: exp.Table, name: str) -> None:
    """Columns still find it by the name that the user has written."""
    alias = table.args.get("alias") or exp.TableAlias()
    if not alias.args.get("this"):
        alias.set("this", exp.to_identifier(table.name, quoted=True))
    table.set("alias", alias)
    table.set("db", None)
    table.set("this", exp.to_identifier(name, quoted=True))


def view_tables(tree: exp.Expr) -> Iterator[tuple[int, exp.Table]]:
    """The tables that are views, each with its number."""
    prefix = f"{RESERVED}t"
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and table.name.startswith(prefix):
            yield int(table.name.removeprefix(prefix)), table


def _words(node: exp.Expr) -> str:
    """What it is, in SQL's words as far as they are short."""
    if isinstance(node, (exp.Parameter, exp.Placeholder, exp.SessionParameter)):
        return "Parameters are"
    if isinstance(node, exp.Lock):
        return "FOR UPDATE and FOR SHARE are"
    return "A change of data is" if isinstance(node, (exp.DML, exp.DDL)) else "This part is"


def _shorten(node: exp.Expr) -> str:
    text = node.sql(dialect="duckdb", comments=False)
    return text if len(text) <= 100 else text[:100] + "…"


def plain_text(message: str) -> str:
    """A message of DuckDB with the names that the user knows."""
    return re.sub(rf"{RESERVED}c_", "", message)
