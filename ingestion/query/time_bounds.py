"""Which times of a table a statement can need, by what its WHERE says of ``__time``. Pure.

A table without joins that look for a nearest row needs only rows that its own SELECT's WHERE can keep: a comparison in
it is never true of a missing row. All other tables have no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from sqlglot import exp

from ingestion.query.statement import view_tables

TIME = "__time"
_LOWEST_US, _HIGHEST_US = -62_135_596_800_000_000, 253_402_300_799_000_000  # years 1 to 9999
Evaluate = Callable[[str], int | None]
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_MIRRORED |= {exp.EQ: exp.EQ}


@dataclass(frozen=True)
class Bounds:
    """``[start_us, end_us)`` in microseconds since 1970; None: without a bound."""

    start_us: int | None = None
    end_us: int | None = None

    def and_(self, other: Bounds) -> Bounds:
        starts = [s for s in (self.start_us, other.start_us) if s is not None]
        ends = [e for e in (self.end_us, other.end_us) if e is not None]
        return Bounds(max(starts, default=None), min(ends, default=None))


@dataclass(frozen=True)
class Conditions:
    """What each row of a table that a statement needs satisfies: the parts of a WHERE that AND joins."""

    parts: tuple[exp.Expr, ...]
    alias: str
    is_alone: bool  # a column without a table's name is its own

    def has(self, node: exp.Expr) -> str:
        """The name in lower case, if it is a column of the table; else empty."""
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return ""
        is_own = node.table.lower() == self.alias or (self.is_alone and not node.table)
        return node.name.lower() if is_own else ""


def time_bounds(tree: exp.Expr, evaluate: Evaluate) -> dict[int, Bounds]:
    """By the number of a table. ``evaluate``: the microseconds of SQL without columns, None if it has none."""
    return {number: _bounds(table, evaluate) for number, table in view_tables(tree)}


def _bounds(table: exp.Table, evaluate: Evaluate) -> Bounds:
    known, bounds = conditions_of(table), Bounds()
    for part in known.parts:
        column, said = bounds_in(part, known, evaluate, {TIME})
        bounds = bounds.and_(said) if column else bounds
    return bounds


def conditions_of(table: exp.Table) -> Conditions:
    """None for a table whose rows the WHERE does not choose."""
    none = Conditions((), "", False)
    select = table.parent_select
    if not isinstance(select, exp.Select) or not isinstance(table.parent, (exp.From, exp.Join)):
        return none
    # sqlglot keeps them at the SELECT or at the table before them.
    joins = [join for join in select.find_all(exp.Join) if join.parent_select is select]
    if any(join.args.get("method") for join in joins):  # ASOF, POSITIONAL: another row would be the nearest
        return none
    if table.args["alias"].args.get("columns"):  # another column may have the name
        return none
    where = select.args.get("where")
    is_alone = not joins and select.find(exp.Lateral) is None
    parts = tuple(_conjuncts(where.this)) if where else ()
    return Conditions(parts, table.alias.lower(), is_alone)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts that all have to be true. Without recursion: there may be thousands."""
    waiting = [condition]
    while waiting:
        condition = waiting.pop().unnest()
        if isinstance(condition, exp.And):
            waiting += [condition.left, condition.right]
        else:
            yield condition


def bounds_in(
    part: exp.Expr, known: Conditions, evaluate: Evaluate, columns: Container[str] | None = None
) -> tuple[str, Bounds]:
    """The column of the table that this part compares with constant times, one of ``columns``; empty: none."""

    def own(node: exp.Expr) -> str:
        name = known.has(node)
        return name if columns is None or name in columns else ""

    if isinstance(part, exp.Between) and own(part.this) and not part.args.get("symmetric"):
        low, high = part.args["low"], part.args["high"]
        return own(part.this), _compared(exp.GTE, low, evaluate).and_(_compared(exp.LTE, high, evaluate))
    kind = type(part)
    if kind not in _MIRRORED or not isinstance(part, exp.Binary):
        return "", Bounds()
    if own(part.left):
        return own(part.left), _compared(kind, part.right, evaluate)
    return (own(part.right), _compared(_MIRRORED[kind], part.left, evaluate)) if own(part.right) else ("", Bounds())


def _compared(kind: type[exp.Expr], value: exp.Expr, evaluate: Evaluate) -> Bounds:
    if value.find(exp.Column, exp.Query, exp.AggFunc, exp.Window, exp.Star) is not None:
        return Bounds()
    at = evaluate(value.sql(dialect="duckdb", comments=False))
    if at is None or not _LOWEST_US < at < _HIGHEST_US:
        return Bounds()
    start = at + 1 if kind is exp.GT else at
    end = at if kind is exp.LT else at + 1
    return Bounds(start if kind not in (exp.LT, exp.LTE) else None, end if kind not in (exp.GT, exp.GTE) else None)
