"""A query of Druid's SQL as DuckDB's, from inside out: what a column is decides what an operator means.

Without the kinds of columns the result has the same tables and time ranges, but may mean something else: only what
was translated with them runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one

from ingestion.query.druid.expressions import Rewriter
from ingestion.query.druid.functions import AGGREGATES
from ingestion.query.druid.parser import parse
from ingestion.query.druid.sketches import OF_VALUES, check_result
from ingestion.query.druid.values import Kind, Refused, kind_of, of_kind, sql
from ingestion.specs.messages.sql import DruidStatement

Columns = dict[str, Kind]
TableColumns = Callable[[str, str], Columns | None]  # of a table by its team and name, if they are known
_SYSTEM = {"information_schema": "INFORMATION_SCHEMA", "sys": "sys"}
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_OPERATORS_OF_LISTS = ("MV_", "ARRAY_")


def translate(asked: DruidStatement, text: str, columns_of: TableColumns) -> str:
    """DuckDB's SQL. Raises ``Refused``."""
    tree = parse(text, asked.parameters)
    translator = _Translator(asked.zone, columns_of)
    translator.query(tree, _Scope(), top=True)
    if asked.outer_limit is not None:
        _limit(tree, asked.outer_limit)
    return tree.sql(dialect="duckdb", comments=False)


def _limit(tree: exp.Expr, most: int) -> None:
    present = tree.args.get("limit")
    written = present.expression.name if isinstance(present, exp.Limit) else ""
    if not (written.isdigit() and int(written) <= most):
        tree.set("limit", exp.Limit(expression=exp.Literal.number(most)))


@dataclass
class _Scope:
    """The tables that a column may be of, and the CTEs that a table may be."""

    sources: dict[str, Columns] = field(default_factory=dict)
    outer: _Scope | None = None
    ctes: Mapping[str, Columns] = field(default_factory=dict)

    def kind(self, column: exp.Column) -> Kind:
        places = [self.sources[column.table]] if column.table in self.sources else []
        for columns in places or ([] if column.table else self.sources.values()):
            if column.name in columns:
                return columns[column.name]
        return self.outer.kind(column) if self.outer is not None else ""


class _Translator:
    def __init__(self, zone: str, columns_of: TableColumns) -> None:
        self._rewriter = Rewriter(zone)
        self._columns_of = columns_of
        self._exploded = 0

    def query(self, node: exp.Expr, outer: _Scope, *, top: bool = False) -> Columns:
        """Rewrite it in place. Its columns."""
        scope = _Scope(outer=outer, ctes=self._ctes(node, outer))
        if isinstance(node, exp.Subquery):
            found = self.query(node.this, _Scope(outer=outer.outer, ctes=scope.ctes, sources=outer.sources), top=top)
        elif isinstance(node, exp.SetOperation):
            found = self.query(node.this, scope, top=top)
            self.query(node.expression, scope, top=top)
        elif isinstance(node, exp.Values):
            return self._values(node, scope)
        elif isinstance(node, exp.Select):
            return self._select(node, scope, top)
        else:
            raise Refused(f"{type(node).__name__} is not supported.")
        scope.sources[""] = found
        self._clauses(node, scope, ("order", "limit", "offset"))
        return _renamed(node, found)

    def _ctes(self, node: exp.Expr, outer: _Scope) -> Mapping[str, Columns]:
        ctes = dict(outer.ctes)
        for cte in node.ctes if isinstance(node, exp.Query) else ():
            ctes[cte.alias] = _renamed(cte, self.query(cte.this, _Scope(ctes=dict(ctes))))
        return ctes

    def _values(self, node: exp.Values, scope: _Scope) -> Columns:
        for row in node.expressions:
            self._expression(row, scope)
        first = node.expressions[0].expressions
        return _renamed(node, {f"EXPR${place}": kind_of(value) for place, value in enumerate(first)})

    def _select(self, node: exp.Select, scope: _Scope, top: bool) -> Columns:
        self._sources(node, scope)
        self._expand_stars(node, scope)
        names = [_name(value, place) for place, value in enumerate(node.expressions)]
        self._explode(node, scope, names)
        for place, value in enumerate(list(node.expressions)):
            found = self._expression(value, scope)
            inner = found.this if isinstance(found, exp.Alias) else found
            if top:
                check_result(inner)
            if top and kind_of(inner) == "mv":
                inner = of_kind("text", _shown(inner))
            is_named = isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and inner.name in (names[place], "*")
            )
            if not is_named:
                alias = exp.alias_(inner.copy(), names[place], quoted=True)
                found.replace(of_kind(kind_of(inner), alias))
        self._clauses(node, scope, ("where", "group", "having", "order", "limit", "offset", "qualify"))
        if isinstance(node.args.get("limit"), exp.Fetch):
            node.set("limit", exp.Limit(expression=node.args["limit"].args["count"]))
        return {name: kind_of(value) for name, value in zip(names, node.expressions, strict=True)}

    def _sources(self, node: exp.Select, scope: _Scope) -> None:
        source = node.args.get("from_")
        if source is not None:
            self._source(source.this, scope)
        for join in [
            *(source.this.args.get("joins") or () if source is not None else ()),
            *(node.args.get("joins") or ()),
        ]:
            if join.args.get("method"):
                raise Refused(f"{join.args['method']} joins are not supported.")
            self._source(join.this, scope)
            if join.args.get("on") is not None:
                self._expression(join.args["on"], scope)

    def _source(self, node: exp.Expr, scope: _Scope) -> None:
        if isinstance(node, exp.Table):
            scope.sources[node.alias_or_name] = _renamed(node, self._table(node, scope))
        elif isinstance(node, (exp.Subquery, exp.Values)):
            inner = _Scope(ctes=scope.ctes)
            scope.sources[node.alias] = self.query(node, inner)
        elif isinstance(node, exp.Unnest):
            found = [self._expression(value, scope) for value in list(node.expressions)]
            for value in found:  # a row without values has one row, too
                value.replace(sql("coalesce(v, [NULL])", v=value))
            names = [column.name for column in node.args["alias"].columns] if node.args.get("alias") else []
            kinds: list[Kind] = ["text" if value.find(exp.Column) else "" for value in found]
            scope.sources[node.alias] = dict(zip(names, kinds, strict=False))
        else:
            raise Refused(f"A query can't read from {node.sql(dialect='druid')[:100]}.")

    def _table(self, node: exp.Table, scope: _Scope) -> Columns:
        if not isinstance(node.this, exp.Identifier) or node.args.get("catalog"):
            raise Refused(f"A query can't read from {node.sql(dialect='druid')[:100]}.")
        if not node.db and node.name in scope.ctes:
            return dict(scope.ctes[node.name])
        if not node.args.get("alias"):
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        system = _SYSTEM.get(node.db.lower())
        if node.db == "druid":
            node.set("db", None)
        elif system is not None:
            node.set("db", exp.to_identifier(system, quoted=True))
        return self._columns_of(node.db, node.name) or {}

    def _expand_stars(self, node: exp.Select, scope: _Scope) -> None:
        """Where a column of several values or a sketch is among them: it is shown in another way, or not."""
        written = list(node.expressions)
        if not any({"mv", *OF_VALUES} & set(columns.values()) for columns in scope.sources.values()):
            return
        found: list[exp.Expr] = []
        for value in written:
            is_star = isinstance(value, exp.Star) or (
                isinstance(value, exp.Column) and isinstance(value.this, exp.Star)
            )
            table = value.table if isinstance(value, exp.Column) else ""
            if is_star:
                places = {table: scope.sources.get(table, {})} if table else scope.sources
                found += [exp.column(c, table=t or None, quoted=True) for t, cs in places.items() for c in cs]
            else:
                found.append(value)
        node.set("expressions", found)

    def _explode(self, node: exp.Select, scope: _Scope, names: Sequence[str]) -> None:
        """GROUP BY a column of several values has a group for each value."""
        keys = _keys(node)
        wanted = {
            (column.table, column.name) for key in keys for column in _plain_columns(key) if scope.kind(column) == "mv"
        }
        for table, name in sorted(wanted):
            alias = f"mv_{self._exploded}"
            self._exploded += 1
            source = sql(
                "CASE WHEN len(c) > 0 THEN c ELSE [NULL] END", c=exp.column(name, table=table or None, quoted=True)
            )
            unnested = f'unnest({source.sql(dialect="duckdb")}) AS "{alias}"("value")'
            text = f"SELECT 1 FROM t CROSS JOIN {unnested}"  # noqa: S608 - only parsed, as a part of a checked tree
            node.append("joins", parse_one(text, read="duckdb").args["joins"][0])
            scope.sources[alias] = {"value": "text"}
            for clause in [
                *node.expressions,
                *(node.args[k] for k in ("group", "having", "order") if node.args.get(k)),
            ]:
                for column in list(_plain_columns(clause)):
                    if (column.table, column.name) == (table, name):
                        value: exp.Expr = exp.column("value", table=alias, quoted=True)
                        if column.parent is node:
                            value = exp.alias_(value, name, quoted=True)
                        column.replace(value)

    def _clauses(self, node: exp.Expr, scope: _Scope, names: Sequence[str]) -> None:
        for name in names:
            if node.args.get(name) is not None:
                self._expression(node.args[name], scope)

    def _expression(self, root: exp.Expr, scope: _Scope) -> exp.Expr:
        """Rewrite all of it, its smallest parts first. What stands in its place."""
        for node in reversed(list(root.bfs(prune=lambda n: isinstance(n, _QUERIES)))):
            if isinstance(node, _QUERIES):
                columns = self.query(node, _Scope(outer=scope, ctes=scope.ctes))
                of_kind(next(iter(columns.values()), ""), node)
                continue
            if isinstance(node, exp.Column):
                of_kind(scope.kind(node), node)
                continue
            found = self._rewriter.rewrite(node)
            if found is not node:
                if node is root and node.parent is None:
                    return found
                node.replace(found)
                root = found if node is root else root
        return root


def _renamed(node: exp.Expr, columns: Columns) -> Columns:
    """By the names that an alias gives them."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    return dict(zip(names, columns.values(), strict=False)) if names else columns


def _name(value: exp.Expr, place: int) -> str:
    return value.alias_or_name if isinstance(value, (exp.Alias, exp.Column, exp.Star)) else f"EXPR${place}"


def _shown(values: exp.Expr) -> exp.Expr:
    """A value that is alone as itself, several as a JSON array."""
    template = "CASE len(m) WHEN 0 THEN NULL WHEN 1 THEN list_extract(m, 1) ELSE CAST(to_json(m) AS VARCHAR) END"
    return sql(template, m=values)


def _keys(node: exp.Select) -> list[exp.Expr]:
    """By what the rows are grouped."""
    if node.args.get("distinct"):
        return list(node.expressions)
    group = node.args.get("group")
    found: list[exp.Expr] = []
    for key in group.expressions if group is not None else ():
        is_place = isinstance(key, exp.Literal) and key.name.isdigit() and 0 < int(key.name) <= len(node.expressions)
        found.append(node.expressions[int(key.name) - 1] if is_place else key)
    return found


def _plain_columns(root: exp.Expr) -> Iterator[exp.Column]:
    """Columns that are not in a function of lists or an aggregate, or in another query."""

    def stops(node: exp.Expr) -> bool:
        name = str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
        return isinstance(node, _QUERIES) or name.startswith(_OPERATORS_OF_LISTS) or name in AGGREGATES

    for node in root.walk(prune=stops):
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            yield node
