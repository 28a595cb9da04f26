"""Druid's functions of sketches. A sketch of values is the list of them, so it is exact; one that is stored is read.

Of the kinds, ``hll`` and ``theta`` are lists of different values, ``quantiles`` is a sorted list of numbers, ``sketch``
the bytes of a stored sketch, and ``sketches`` a list of those.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import cast

from sqlglot import exp

from ingestion.query.druid.values import Kind, Refused, kind_of, of_kind, sql

OF_VALUES = frozenset({"hll", "theta", "quantiles", "sketches"})  # what is no value of a row
_FILTERED_INSIDE = "filtered_inside"  # a FILTER belongs to an aggregate in the expression
_NAN = "CAST('NaN' AS DOUBLE)"


def sketched(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    """The function's value; None if it is none of these. Raises ``Refused``."""
    if name not in _FUNCTIONS:
        return None
    kind, least, most, build = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        counts = str(least) if least == most else f"{least} to {most}"
        raise Refused(f"{name} takes {counts} arguments, not {len(arguments)}.")
    if any(isinstance(argument, exp.Distinct) for argument in arguments):
        raise Refused(f"{name} takes no DISTINCT: it counts a value once.")
    sizes = arguments[_SIZED[build] :][:1] if build in _SIZED else []
    for size in sizes:
        _check_size(name, kind, size)
    return build(name, kind, arguments)


def _check_size(name: str, kind: Kind, size: exp.Expr) -> None:
    """An exact sketch has no use for it, but Druid refuses a wrong one."""
    size = size.unnest()
    number = int(size.name) if isinstance(size, exp.Literal) and size.name.isdigit() else 0
    if kind == "hll" and not 4 <= number <= 21:
        raise Refused(f"{name} takes lgK, a number from 4 to 21, not {size.sql(dialect='duckdb')[:100]}.")
    if kind != "hll" and (number < 2 or number & (number - 1)):
        raise Refused(f"{name} takes a size that is a power of two, not {size.sql(dialect='duckdb')[:100]}.")


def filtered(node: exp.Filter | exp.Window) -> exp.Expr | None:
    """FILTER of a sketch is that of the aggregate in it; None if it stays where it is. Raises ``Refused``."""
    whole = node.this.copy()
    if not whole.meta.get(_FILTERED_INSIDE) or isinstance(whole, exp.AggFunc):
        return None
    if isinstance(node, exp.Window):
        raise Refused("OVER is not supported with this function of sketches.")
    for part in list(whole.walk(prune=lambda part: isinstance(part, exp.AggFunc))):
        if isinstance(part, exp.AggFunc):
            part.replace(exp.Filter(this=part.copy(), expression=node.expression.copy()))
    return cast("exp.Expr", whole)


def check_result(value: exp.Expr) -> None:
    """Raises ``Refused`` for what stands for a sketch: Druid would show its bytes."""
    if kind_of(value) in OF_VALUES:
        raise Refused("A query can't show a sketch. Use a function that reads it, such as THETA_SKETCH_ESTIMATE.")


def _sketch(name: str, kind: Kind, arguments: list[exp.Expr]) -> exp.Expr:
    """Of the values, or of the sketches, in a column."""
    value, found = arguments[0], kind_of(arguments[0])
    if found in ("sketch", "sketches"):
        template, kind = ("list(v)" if found == "sketch" else "flatten(list(v))"), "sketches"
    elif found == kind == "quantiles":
        template = "list_sort(flatten(list(v)))"
    elif found in OF_VALUES - {kind} or (kind == "quantiles" and found in ("mv", "array")):
        raise Refused(f"{name} can't read {value.sql(dialect='duckdb')[:100]}.")
    elif kind == "quantiles":
        template = "list_sort(list_filter(list(d), lambda n: n IS NOT NULL))"
        return _aggregate(kind, template, d=_double(value))
    else:
        value = _without_empty(value)
        is_list = found in ("mv", "array", kind)
        template = "list_distinct(flatten(list(DISTINCT v)))" if is_list else "list_distinct(list(DISTINCT v))"
    return _aggregate(kind, template, v=value)


def _without_empty(value: exp.Expr) -> exp.Expr:
    """Druid does not count the empty text."""
    if kind_of(value) == "mv":
        return sql("list_filter(v, lambda e: e <> '')", v=value)
    return sql("nullif(v, '')", v=value) if kind_of(value) == "text" else value


def _aggregate(kind: Kind, template: str, **parts: exp.Expr) -> exp.Expr:
    found = of_kind(kind, sql(template, **parts))
    found.meta[_FILTERED_INSIDE] = True
    return found


def _count(name: str, kind: Kind, arguments: list[exp.Expr]) -> exp.Expr:
    if kind_of(arguments[0]) not in {"mv", "array", "sketch"} | OF_VALUES:
        return of_kind("long", sql("count(DISTINCT v)", v=_without_empty(arguments[0])))
    estimate = _estimate(name, kind, [_sketch(name, kind, arguments)])
    return _aggregate("long", "CAST(round(v) AS BIGINT)", v=estimate)


def _estimate(name: str, kind: Kind, arguments: list[exp.Expr]) -> exp.Expr:
    if kind_of(arguments[0]) == kind:
        return of_kind("double", sql("CAST(coalesce(len(v), 0) AS DOUBLE)", v=arguments[0]))
    found = _stored(name, f"sketch_distinct(v, '{kind}')", arguments[0], "0e0")
    is_rounded = len(arguments) > 1 and isinstance(arguments[1], exp.Boolean) and arguments[1].this
    return of_kind("double", sql("round(v)", v=found) if is_rounded else found)


def _stored(name: str, template: str, value: exp.Expr, without: str) -> exp.Expr:
    """A function of stored sketches. A row without a sketch is NULL, an aggregate of none is ``without``."""
    if kind_of(value) == "sketches":
        return sql(f"coalesce({template}, {without})", v=value)
    if kind_of(value) not in ("sketch", ""):  # not known: the translation without columns
        raise Refused(f"{name} takes a sketch of its kind, not {value.sql(dialect='duckdb')[:100]}.")
    return sql(template, v=sql("[s]", s=value))


def _quantile(name: str, kind: Kind, arguments: list[exp.Expr]) -> exp.Expr:
    value, rank = arguments[0], _rank_of(name, arguments[1])
    if kind_of(value) in {"sketch", "mv", "array"} | OF_VALUES:
        return _aggregate("double", "v", v=_value_at(name, kind, [_sketch(name, kind, [value]), arguments[1]]))
    return _aggregate("double", f"coalesce(quantile_disc(d, {rank:f}), {_NAN})", d=_double(value))


def _double(value: exp.Expr) -> exp.Expr:
    """A text that holds no number is not counted."""
    return sql("CAST(epoch_ms(v) AS DOUBLE)" if kind_of(value) == "time" else "TRY_CAST(v AS DOUBLE)", v=value)


def _rank_of(name: str, value: exp.Expr) -> Decimal:
    literal = value.find(exp.Literal) if isinstance(value, (exp.Literal, exp.Cast, exp.Paren)) else None
    try:
        rank = Decimal(literal.name if literal is not None else "")
    except ArithmeticError:
        rank = Decimal(-1)
    if not 0 <= rank <= 1:
        raise Refused(f"{name} takes a number from 0 to 1, not {value.sql(dialect='duckdb')[:100]}.")
    return rank


def _value_at(name: str, kind: Kind, arguments: list[exp.Expr]) -> exp.Expr:
    value, rank = arguments[0], f"{_rank_of(name, arguments[1]):f}e0"
    if kind_of(value) != kind:
        return of_kind("double", _stored(name, f"sketch_quantile(v, {rank})", value, _NAN))
    place = f"greatest(CAST(ceil(round({rank} * len(v), 6)) AS BIGINT), 1)"
    return of_kind("double", sql(f"coalesce(list_extract(v, {place}), {_NAN})", v=value))


_FUNCTIONS: dict[str, tuple[Kind, int, int, Callable[[str, Kind, list[exp.Expr]], exp.Expr]]] = {
    "APPROX_COUNT_DISTINCT_DS_HLL": ("hll", 1, 3, _count),
    "APPROX_COUNT_DISTINCT_DS_THETA": ("theta", 1, 2, _count),
    "APPROX_QUANTILE_DS": ("quantiles", 2, 3, _quantile),
    "DS_HLL": ("hll", 1, 3, _sketch),
    "DS_THETA": ("theta", 1, 2, _sketch),
    "DS_QUANTILES_SKETCH": ("quantiles", 1, 2, _sketch),
    "HLL_SKETCH_ESTIMATE": ("hll", 1, 2, _estimate),
    "THETA_SKETCH_ESTIMATE": ("theta", 1, 1, _estimate),
    "DS_GET_QUANTILE": ("quantiles", 2, 2, _value_at),
}
_SIZED = {_count: 1, _sketch: 1, _quantile: 2}  # which argument says how large a sketch may be
SKETCH_FUNCTIONS = tuple(_FUNCTIONS)
