"""What a statement's WHERE says of a table of ``sys``, so that less of it has to be written. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ingestion.query.statement import view_tables
from ingestion.query.time_bounds import Bounds, Conditions, Evaluate, bounds_in, conditions_of
from ingestion.specs.messages.sql import SYS, SqlTableUse

_MAX_PARTS = 50  # of one WHERE
_MAX_VALUES = 1_000  # of one IN
_LONGEST_INTEGER = 18  # digits
Value = str | int | bool


def add_sys_conditions(tree: exp.Expr, uses: list[SqlTableUse], evaluate: Evaluate) -> None:
    """Of tables of ``sys`` alone. Their columns are not known here: a condition may be of one that there is not."""
    for number, table in view_tables(tree):
        if uses[number].team.lower() == SYS:
            _add(conditions_of(table), uses[number], evaluate)


def _add(known: Conditions, use: SqlTableUse, evaluate: Evaluate) -> None:
    for part in known.parts[:_MAX_PARTS]:
        for column, values in _equal(part, known):
            use.equal.setdefault(column, values)
        column, said = bounds_in(part, known, evaluate)
        if column and said != Bounds():
            before = Bounds(*use.between.get(column, (None, None)))
            both = before.and_(said)
            use.between[column] = (both.start_us, both.end_us)


def _equal(part: exp.Expr, known: Conditions) -> Iterator[tuple[str, list[Value]]]:
    if known.has(part):  # of truth
        yield known.has(part), [True]
    if isinstance(part, exp.Not) and known.has(part.this):
        yield known.has(part.this), [False]
    if isinstance(part, exp.EQ):
        for column, value in ((part.left, part.right), (part.right, part.left)):
            if known.has(column) and (constant := _constant(value)) is not None:
                yield known.has(column), [constant]
    if isinstance(part, exp.In) and known.has(part.this) and 0 < len(part.expressions) <= _MAX_VALUES:
        constants = [c for each in part.expressions if (c := _constant(each)) is not None]
        if len(constants) == len(part.expressions):
            yield known.has(part.this), constants


def _constant(node: exp.Expr) -> Value | None:
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.this)
    text = str(node.this)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_INTEGER else None
