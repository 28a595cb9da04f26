"""One node of an expression of Druid's as DuckDB's. Its parts are rewritten already, and their kinds are known."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ingestion.query.druid import times
from ingestion.query.druid.functions import AGGREGATES, EACH, filled, templates
from ingestion.query.druid.sketches import OF_VALUES, SKETCH_FUNCTIONS, check_result, filtered, sketched
from ingestion.query.druid.values import Kind, Refused, call, kind_of, of_kind, sql

_LONGS = {"BIGINT", "INT", "SMALLINT", "TINYINT"}
_DOUBLES = {"DOUBLE", "FLOAT", "DECIMAL"}
_PICK = {"ANY_VALUE", "LATEST_BY", "EARLIEST_BY"}  # take a row's value as it is
_SKETCHES = ("_DS_", "DS_", "HLL_SKETCH", "THETA_SKETCH", "TDIGEST", "SPECTATOR")
_ANY = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.In, exp.Between)
# What has the kind of its first part.
_TRANSPARENT = (exp.Alias, exp.Paren, exp.Neg, exp.Distinct, exp.Filter, exp.Window, exp.IgnoreNulls, exp.RespectNulls)
_CONDITIONS = (*_ANY, exp.And, exp.Or, exp.Not, exp.Is, exp.Exists, exp.NullSafeEQ, exp.NullSafeNEQ)
# What only holds other parts together.
_STRUCTURE: tuple[type[exp.Expr], ...] = (exp.Identifier, exp.DataType, exp.DataTypeParam, exp.Var, exp.Star)
_STRUCTURE += (exp.Where, exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Having, exp.Order, exp.Ordered)
_STRUCTURE += (exp.Limit, exp.Fetch, exp.LimitOptions, exp.Offset, exp.Tuple, exp.WindowSpec, exp.WithinGroup)
_STRUCTURE += (exp.JSONPath, exp.JSONPathPart, exp.IntervalSpan, exp.If, exp.Escape)


class Rewriter:
    """``zone``: whose days and hours a query means."""

    def __init__(self, zone: str) -> None:
        self._zone = zone

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        """The node, or what stands in its place, with its kind. Raises ``Refused``."""
        if isinstance(node, _ANY) and kind_of(node.this) == "mv":
            return self._any_value(node)
        rule = _RULES.get(type(node))
        if rule is not None:
            return rule(self, node)
        if isinstance(node, (exp.Filter, exp.Window)) and (found := filtered(node)) is not None:
            return found
        if isinstance(node, _CONDITIONS):
            return of_kind("boolean", node)
        if isinstance(node, _TRANSPARENT):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) and node.expressions else node.this
            return of_kind(kind_of(inner), node)
        if isinstance(node, _STRUCTURE):
            return node
        raise Refused(f"{type(node).__name__} is not supported: {node.sql(dialect='druid')[:100]}")

    def _any_value(self, node: exp.Expr) -> exp.Expr:
        """A condition on a dimension of several values holds if it does for one of them; NOT EQUAL if for none."""
        values = node.this.copy()
        if isinstance(node, exp.NEQ):
            return of_kind("boolean", sql("NOT list_contains(m, v)", m=values, v=node.expression))
        if isinstance(node, exp.EQ) and kind_of(node.expression) in ("text", ""):
            return of_kind("boolean", sql("list_contains(m, v)", m=values, v=node.expression))
        condition = node.copy()
        condition.set("this", exp.column(EACH))
        return of_kind("boolean", sql(f"len(list_filter(m, lambda {EACH}: p)) > 0", m=values, p=condition))

    def literal(self, node: exp.Expr) -> exp.Expr:
        if node.args.get("is_string"):
            return of_kind("text", node)
        if node.name.isdigit():
            return of_kind("long", node)
        number = node.name.lower()
        return of_kind("double", exp.Literal.number(number if "e" in number else f"{number}e0"))

    def cast(self, node: exp.Expr) -> exp.Expr:
        target, value = node.args["to"].this.value, node.this
        kind = kind_of(value)
        if target in ("VARCHAR", "CHAR", "TEXT"):
            return of_kind("text", self._as_text(value, kind))
        if target in _LONGS:
            return of_kind("long", _as_long(value, kind))
        if target in _DOUBLES:
            value = call("epoch_ms", value) if kind == "time" else value
            return of_kind("double", exp.TryCast(this=value.copy(), to=exp.DataType.build("DOUBLE")))
        if target == "BOOLEAN":
            template = "lower(v) = 'true'" if kind == "text" else "CAST(v AS BOOLEAN)"
            return of_kind("boolean", sql(template, v=value))
        if target in ("TIMESTAMP", "DATE"):
            at = self._literal_time(value) if isinstance(value, exp.Literal) else times.as_time(value)
            return at if target == "TIMESTAMP" else times.floor(at, "P1D", self._zone)
        if target == "ARRAY" and kind in ("mv", "array"):
            return of_kind("array", value)
        raise Refused(f"CAST to {node.args['to'].sql(dialect='druid')} is not supported.")

    def _literal_time(self, value: exp.Expr) -> exp.Expr:
        if not value.args.get("is_string"):
            return times.as_time(value)
        return of_kind("time", exp.Cast(this=value.copy(), to=exp.DataType.build("TIMESTAMPTZ", dialect="duckdb")))

    def _as_text(self, value: exp.Expr, kind: Kind) -> exp.Expr:
        check_result(value)
        if kind == "time":
            zone = exp.Literal.string(self._zone)
            return sql("strftime(timezone(z, v), '%Y-%m-%d %H:%M:%S')", z=zone, v=value)
        if kind in ("mv", "text", "json"):
            return value
        return exp.Cast(this=value.copy(), to=exp.DataType.build("VARCHAR"))

    def divide(self, node: exp.Expr) -> exp.Expr:
        """Whole numbers give a whole number."""
        if kind_of(node.this) == kind_of(node.args["expression"]) == "long":
            return of_kind("long", exp.IntDiv(this=node.this.copy(), expression=node.args["expression"].copy()))
        return of_kind("double", node)

    def arithmetic(self, node: exp.Expr) -> exp.Expr:
        kinds = {kind_of(node.this), kind_of(node.args["expression"])}
        if "time" in kinds:
            return of_kind("time" if "interval" in kinds else "", node)
        return of_kind("double" if "double" in kinds else "" if "" in kinds else "long", node)

    def joined(self, node: exp.Expr) -> exp.Expr:
        return self._concat([node.this, node.args["expression"]])

    def case(self, node: exp.Expr) -> exp.Expr:
        results = [branch.args["true"] for branch in node.args["ifs"]]
        results += [node.args["default"]] if node.args.get("default") else []
        return of_kind(_common(results), node)

    def rounded(self, node: exp.Expr) -> exp.Expr:
        unit = node.args.get("to")
        if unit is None:
            return of_kind(kind_of(node.this), node)
        period = times.PERIODS.get(unit.name.upper())
        if period is None:
            raise Refused(f"{unit.name} is not one of {', '.join(times.PERIODS)}.")
        change = times.floor if isinstance(node, exp.Floor) else times.ceil
        return change(node.this, period, self._zone)

    def extracted(self, node: exp.Expr) -> exp.Expr:
        return times.extract(node.name.upper(), node.args["expression"], self._zone)

    def trimmed(self, node: exp.Expr) -> exp.Expr:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        return of_kind("text", call(name, node.this, node.args.get("expression") or exp.Literal.string(" ")))

    def position(self, node: exp.Expr) -> exp.Expr:
        if node.args.get("position") is not None:
            raise Refused("POSITION with FROM is not supported.")
        return of_kind("long", call("strpos", node.this, node.args["substr"]))

    def substring(self, node: exp.Expr) -> exp.Expr:
        parts = [node.this, node.args["start"], node.args.get("length")]
        return of_kind("text", call("substring", *(part for part in parts if part is not None)))

    def json_value(self, node: exp.Expr) -> exp.Expr:
        """A scalar; an object or a list is NULL."""
        path = node.args["path"]
        path = exp.Literal.string(path.sql(dialect="duckdb").strip("'")) if isinstance(path, exp.JSONPath) else path
        template = "CASE WHEN json_type(j, p) NOT IN ('OBJECT', 'ARRAY') THEN json_extract_string(j, p) END"
        found = of_kind("text", sql(template, j=node.this, p=path))
        returning = node.args.get("returning")
        return self.cast(exp.Cast(this=found, to=returning)) if isinstance(returning, exp.DataType) else found

    def function(self, node: exp.Expr) -> exp.Expr:
        name = str(node.this).upper()
        arguments = _arguments(node)
        if name in times.TIME_FUNCTIONS:
            least, most, build = times.TIME_FUNCTIONS[name]
            if not least <= len(arguments) <= most:
                raise Refused(f"{name} takes {least} to {most} arguments, not {len(arguments)}.")
            return build(arguments, self._zone)
        if name == "CONCAT" and arguments:
            return self._concat(arguments)
        if name == "SAFE_DIVIDE" and [kind_of(argument) for argument in arguments] == ["long", "long"]:
            return of_kind("long", sql("CASE WHEN b <> 0 THEN a // b END", a=arguments[0], b=arguments[1]))
        if name in ("MV_CONTAINS", "ARRAY_CONTAINS") and len(arguments) == 2:
            every = kind_of(arguments[1]) in ("array", "mv")
            return of_kind("boolean", call("list_has_all" if every else "list_contains", *arguments))
        return sketched(name, arguments) or self._of_table(name, arguments)

    def _of_table(self, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        known = templates().get(name)
        if known is None:
            raise Refused(_refusal(name))
        found = known.get(len(arguments)) or known.get(-1)
        if found is None:
            raise Refused(f"{name} takes {' or '.join(map(str, sorted(known)))} arguments, not {len(arguments)}.")
        kind, template = found
        _check_sketches(name, arguments)
        lists = [place for place, argument in enumerate(arguments) if kind_of(argument) == "mv"]
        if lists == [0] and kind == "text" and name not in AGGREGATES and not _takes_lists(name):
            each = filled(template, [exp.column(EACH), *arguments[1:]])
            return of_kind("mv", sql(f"list_transform(m, lambda {EACH}: e)", m=arguments[0], e=each))
        if lists and (not _takes_lists(name) or isinstance(arguments[0], exp.Distinct)):
            raise Refused(f"{name} of a column with several values is not supported. Use UNNEST(MV_TO_ARRAY(column)).")
        return of_kind(_result_kind(name, kind, arguments), filled(template, arguments))

    def _concat(self, arguments: list[exp.Expr]) -> exp.Expr:
        whole, *others = [self._as_text(argument, kind_of(argument)).copy() for argument in arguments]
        for other in others:
            whole = exp.DPipe(this=whole, expression=other, safe=True)
        return of_kind("text", exp.Paren(this=whole))


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """Those of a function; what follows DISTINCT in STRING_AGG(DISTINCT x, ',') is its first one alone."""
    found: list[exp.Expr] = list(node.args["expressions"])
    if found and isinstance(found[0], exp.Distinct) and len(found[0].expressions) > 1:
        first, *others = found[0].expressions
        found = [of_kind(kind_of(first), exp.Distinct(expressions=[first.copy()])), *others, *found[1:]]
    return found


def _check_sketches(name: str, arguments: list[exp.Expr]) -> None:
    """Bytes would be taken for values."""
    kinds = {kind_of(argument) for argument in arguments}
    counts_rows = name == "COUNT" and not isinstance(arguments[0], exp.Distinct)
    if kinds & OF_VALUES or ("sketch" in kinds and name in AGGREGATES - _PICK and not counts_rows):
        raise Refused(f"{name} of a sketch is not supported. Use functions such as APPROX_COUNT_DISTINCT_DS_HLL.")


def _takes_lists(name: str) -> bool:
    return name.startswith(("MV_", "ARRAY_")) or name in ("COUNT", "CARDINALITY")


def _result_kind(name: str, kind: str, arguments: list[exp.Expr]) -> Kind:
    if kind != "same":
        return kind  # type: ignore[return-value]  # one of the table's
    if name in ("COALESCE", "NVL", "GREATEST", "LEAST", "MOD"):
        return _common(arguments)
    found = kind_of(arguments[0])
    return "double" if name == "SUM" and found == "text" else found


def _common(values: list[exp.Expr]) -> Kind:
    kinds = {kind_of(value) for value in values} - {"null"}
    if kinds == {"long", "double"}:
        return "double"
    return kinds.pop() if len(kinds) == 1 else ""


def _as_long(value: exp.Expr, kind: Kind) -> exp.Expr:
    """Cut towards 0; NULL of a text that holds no number."""
    if kind == "time":
        return call("epoch_ms", value)
    if kind == "double":
        return sql("try_cast(trunc(v) AS BIGINT)", v=value)
    if kind == "text":
        return sql(
            r"CASE WHEN regexp_full_match(v, '[+-]?\d+') THEN try_cast(v AS BIGINT) "
            "ELSE try_cast(trunc(try_cast(v AS DOUBLE)) AS BIGINT) END",
            v=value,
        )
    return exp.TryCast(this=value.copy(), to=exp.DataType.build("BIGINT"))


def _refusal(name: str) -> str:
    if any(part in name for part in _SKETCHES):
        return f"{name} is not supported. The functions of sketches are {', '.join(SKETCH_FUNCTIONS)}."
    return f"{name} is not supported."


def _kind(kind: Kind) -> Callable[[Rewriter, exp.Expr], exp.Expr]:
    return lambda rewriter, node: of_kind(kind, node)


def _now(rewriter: Rewriter, node: exp.Expr) -> exp.Expr:
    return of_kind("time", call("now"))


_RULES: dict[type[exp.Expr], Callable[[Rewriter, exp.Expr], exp.Expr]] = {
    exp.Literal: Rewriter.literal,
    exp.Boolean: _kind("boolean"),
    exp.Null: _kind("null"),
    exp.Interval: _kind("interval"),
    exp.Array: _kind("array"),
    exp.Cast: Rewriter.cast,
    exp.TryCast: Rewriter.cast,
    exp.Div: Rewriter.divide,
    exp.Add: Rewriter.arithmetic,
    exp.Sub: Rewriter.arithmetic,
    exp.Mul: Rewriter.arithmetic,
    exp.Mod: Rewriter.arithmetic,
    exp.DPipe: Rewriter.joined,
    exp.Case: Rewriter.case,
    exp.Floor: Rewriter.rounded,
    exp.Ceil: Rewriter.rounded,
    exp.Extract: Rewriter.extracted,
    exp.Trim: Rewriter.trimmed,
    exp.StrPosition: Rewriter.position,
    exp.Substring: Rewriter.substring,
    exp.JSONValue: Rewriter.json_value,
    exp.Anonymous: Rewriter.function,
    exp.CurrentTimestamp: _now,
    exp.CurrentDate: lambda rewriter, node: times.floor(_now(rewriter, node), "P1D", rewriter._zone),
}
