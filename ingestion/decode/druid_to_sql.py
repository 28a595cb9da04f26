"""What some of Druid's functions and operators mean in DuckDB's SQL, for arguments of each kind: many records at once.

``TRANSLATIONS`` are those that SQL can say. Each was held against a real Druid (``tests/golden``): for arguments of the
kinds that it takes it gives the same, or fails. Where it fails, and for all else, ``druid_evaluator`` looks at the
record.

Booleans are longs 1 and 0, as in Druid; true is what is greater than 0. Sums that a long can't hold fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ingestion.decode.druid_parser import Call, Field, Lambda, Literal, Node
from ingestion.decode.druid_values import Array
from ingestion.decode.engine import sql_literal
from ingestion.decode.value_kinds import BOOLEAN, DOUBLE, LONG, NULL, STRING

# Of these letters DuckDB makes others than Java does: several letters, or letters that are younger than Java's Unicode.
_ODD_LOWER = "\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56\u1f80-\u1fff\u2c5f\ua7c1\ua7d1"
_ODD_LOWER += "\ua7d7\ua7d9\ufb00-\ufb17\U00010570-\U000105bf"
_ODD_UPPER = "\u0130\u03a3\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8\U00010570-\U000105bf"
_LONGEST_SQL = 50_000
_FUNCTIONS = {"+": "add", "-": "subtract", "*": "multiply"}


class NotTranslatable(Exception):
    """It makes no sense for these kinds of arguments, or is not known to be the same."""


@dataclass(frozen=True)
class TypedSql:
    """SQL, with the kind of its value."""

    kind: int
    sql: str
    certain: bool = False  # not null in any record of these kinds


@dataclass(frozen=True)
class Translation:
    """What a function of Druid's means in SQL."""

    sql: Callable[[Sequence[TypedSql]], TypedSql]
    # least and most: how many arguments.
    min_arguments: int
    max_arguments: int
    literal_arguments: tuple[int, ...] = ()  # which of them have to be texts in the expression


_NULL_SQL = TypedSql(NULL, "NULL")


def translate(node: Node, kinds: Mapping[str, int], columns: Mapping[str, str]) -> TypedSql:
    """The expression over ``columns`` (field → SQL name) of these ``kinds``. Raises ``NotTranslatable``."""
    if isinstance(node, Literal):
        return _constant(node.value)
    if isinstance(node, Lambda):
        raise NotTranslatable
    if isinstance(node, Field):
        kind = kinds[node.name]
        return (
            _NULL_SQL if kind == NULL else TypedSql(LONG if kind == BOOLEAN else kind, columns[node.name], certain=True)
        )
    typed = _translation(node).sql([translate(a, kinds, columns) for a in node.arguments])
    if len(typed.sql) > _LONGEST_SQL:
        raise NotTranslatable
    return typed


def transform_sql(typed: TypedSql) -> str:
    """A transform's result. A double that is no number fails: it could not be stored."""
    if typed.kind != DOUBLE:
        return typed.sql
    return (
        f"CASE WHEN isfinite({typed.sql}) THEN {typed.sql} WHEN ({typed.sql}) IS NOT NULL THEN {_fail(typed.sql)} END"
    )


def filter_sql(typed: TypedSql) -> str:
    """A filter's result: true, false, or null where nothing is known."""
    return _truth(typed)


def _name(call: Call) -> str:
    return "unary -" if call.name == "-" and len(call.arguments) == 1 else call.name


def _translation(call: Call) -> Translation:
    """Raises ``NotTranslatable`` where the call has none in SQL."""
    meaning = TRANSLATIONS.get(_name(call))
    if meaning is None or not meaning.min_arguments <= len(call.arguments) <= meaning.max_arguments:
        raise NotTranslatable
    for place in meaning.literal_arguments:
        argument = call.arguments[place]
        written = argument.value if isinstance(argument, Literal) else None
        if not isinstance(written, str) or (place == 1 and not written):
            raise NotTranslatable
    return meaning


def _constant(value: int | float | str | Array | None) -> TypedSql:
    if value is None:
        return _NULL_SQL
    if isinstance(value, Array) or value == -(2**63) or (isinstance(value, str) and "\0" in value):
        raise NotTranslatable
    if isinstance(value, str):
        return TypedSql(STRING, sql_literal(value), certain=True)
    kind, name = (LONG, "BIGINT") if isinstance(value, int) else (DOUBLE, "DOUBLE")
    return TypedSql(kind, f"CAST({value!r} AS {name})", certain=True)


def _fail(sql: str) -> str:
    """A double that can't be made: DuckDB's own ``error`` may not be tried."""
    return f"CAST(concat(CAST({sql} AS VARCHAR), '!') AS DOUBLE)"


def _any_null(arguments: Sequence[TypedSql]) -> bool:
    return any(a.kind == NULL for a in arguments)


def _as_double(argument: TypedSql) -> str:
    """A number; of a text the number it plainly holds, and null where it holds nothing like one."""
    if argument.kind in (LONG, DOUBLE):
        return f"CAST({argument.sql} AS DOUBLE)"
    if argument.kind != STRING:
        raise NotTranslatable
    text = argument.sql
    plain = f"regexp_full_match({text}, '[-+]?[0-9]{{1,15}}(\\.[0-9]{{1,15}})?')"
    no_number = f"NOT regexp_matches({text}, '(?i)[0-9]|nan|infinity|true|false')"
    return f"CASE WHEN {plain} THEN CAST({text} AS DOUBLE) WHEN {no_number} THEN NULL ELSE {_fail(text)} END"


def _as_text(argument: TypedSql) -> str:
    """Texts and longs; Java writes doubles in its own way."""
    if argument.kind == STRING:
        return argument.sql
    if argument.kind == LONG:
        return f"CAST({argument.sql} AS VARCHAR)"
    raise NotTranslatable


def _truth(argument: TypedSql) -> str:
    if argument.kind == NULL:
        return "CAST(NULL AS BOOLEAN)"
    if argument.kind == STRING:
        return f"(lower({argument.sql}) = 'true')"
    if argument.kind in (LONG, DOUBLE):
        return f"({argument.sql} > 0)"
    raise NotTranslatable


def _arithmetic(sign: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    def to_sql(arguments: Sequence[TypedSql]) -> TypedSql:
        left, right = arguments
        if _any_null(arguments):
            return _NULL_SQL
        if left.kind == right.kind == LONG:
            # Not as an operator: DuckDB would solve comparisons with it, and never meet what a long can't hold.
            return TypedSql(LONG, f"{_FUNCTIONS[sign]}({left.sql}, {right.sql})")
        if left.kind == right.kind == STRING:
            if sign != "+":
                raise NotTranslatable
            return TypedSql(STRING, f"({left.sql} || {right.sql})")
        return TypedSql(DOUBLE, f"({_as_double(left)} {sign} {_as_double(right)})")

    return to_sql


def _negative(arguments: Sequence[TypedSql]) -> TypedSql:
    (only,) = arguments
    if only.kind not in (NULL, LONG, DOUBLE):
        raise NotTranslatable
    return only if only.kind == NULL else TypedSql(only.kind, f"(-{only.sql})")


def _comparison(sign: str, texts: bool) -> Callable[[Sequence[TypedSql]], TypedSql]:
    """``texts``: whether two texts can be compared. Which comes first is another matter in Java."""

    def to_sql(arguments: Sequence[TypedSql]) -> TypedSql:
        left, right = arguments
        if _any_null(arguments):
            return _NULL_SQL
        if left.kind == right.kind == STRING and not texts:
            raise NotTranslatable
        if left.kind == right.kind and left.kind in (LONG, STRING):
            return _as_long(f"{left.sql} {sign} {right.sql}")
        return _as_long(f"{_as_double(left)} {sign} {_as_double(right)}")

    return to_sql


def _as_long(truth: str) -> TypedSql:
    return TypedSql(LONG, f"CAST(({truth}) AS BIGINT)")


def _logical(word: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    return lambda arguments: _as_long(f" {word} ".join(_truth(a) for a in arguments))


def _concat(arguments: Sequence[TypedSql]) -> TypedSql:
    """Null with a null in it."""
    if _any_null(arguments):
        return _NULL_SQL
    return TypedSql(STRING, f"({' || '.join(_as_text(a) for a in arguments)})")


def _case_changer(function: str, odd_letters: str, prepared: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    def to_sql(arguments: Sequence[TypedSql]) -> TypedSql:
        if _any_null(arguments):
            return _NULL_SQL
        text = _as_text(arguments[0])
        fail = f"CAST({_fail(text)} AS VARCHAR)"
        plain = f"{function}({prepared.format(text)})"
        return TypedSql(STRING, f"CASE WHEN regexp_matches({text}, '[{odd_letters}]') THEN {fail} ELSE {plain} END")

    return to_sql


def _coalesce(arguments: Sequence[TypedSql]) -> TypedSql:
    """``nvl`` and ``coalesce``: only for arguments of one kind, because else the value decides the kind."""
    not_null = [a for a in arguments if a.kind != NULL]
    if not_null and not_null[0].certain:
        return not_null[0]
    return _same_kind_sql(not_null, lambda sqls: f"coalesce({', '.join(sqls)})")


def _same_kind_sql(arguments: Sequence[TypedSql], build: Callable[[list[str]], str]) -> TypedSql:
    kinds = {a.kind for a in arguments if a.kind != NULL}
    if len(kinds) > 1:
        raise NotTranslatable
    return TypedSql(kinds.pop(), build([a.sql for a in arguments])) if kinds else _NULL_SQL


def _is_null(word: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    return lambda arguments: _as_long(f"({arguments[0].sql}) {word}")


def _trimmer(function: str) -> Callable[[Sequence[TypedSql]], TypedSql]:
    def to_sql(arguments: Sequence[TypedSql]) -> TypedSql:
        (only,) = arguments
        return TypedSql(STRING, f"{function}({only.sql}, ' ')") if only.kind == STRING else only

    return to_sql


def _number_function(function: str, keeps_long: bool) -> Callable[[Sequence[TypedSql]], TypedSql]:
    """Null of anything else, texts with numbers too. ``keeps_long``: a long stays one."""

    def to_sql(arguments: Sequence[TypedSql]) -> TypedSql:
        (only,) = arguments
        if only.kind not in (LONG, DOUBLE):
            return TypedSql(DOUBLE, "CAST(NULL AS DOUBLE)")
        if keeps_long and only.kind == LONG:
            return TypedSql(LONG, f"{function}({only.sql})")
        return TypedSql(DOUBLE, f"{function}({_as_double(only)})")

    return to_sql


def _replace(arguments: Sequence[TypedSql]) -> TypedSql:
    if _any_null(arguments):
        return _NULL_SQL
    return TypedSql(STRING, f"replace({', '.join(_as_text(a) for a in arguments)})")


def _contains(arguments: Sequence[TypedSql]) -> TypedSql:
    if _any_null(arguments):
        return _NULL_SQL
    return _as_long(f"contains({_as_text(arguments[0])}, {arguments[1].sql})")


def _case(arguments: Sequence[TypedSql]) -> TypedSql:
    """``if`` and ``case_searched``: conditions and values by turns, then what else; null without it."""
    conditions = [_truth(a) for a in arguments[:-1:2]]
    values = [*arguments[1::2], arguments[-1]] if len(arguments) % 2 else [*arguments[1::2], _NULL_SQL]

    def case(sqls: list[str]) -> str:
        checks = [f"WHEN {c} THEN {v}" for c, v in zip(conditions, sqls, strict=False)]
        return f"CASE {' '.join(checks)} ELSE {sqls[-1]} END"

    return _same_kind_sql(values, case)


_MANY = 100
TRANSLATIONS: Mapping[str, Translation] = {
    "+": Translation(_arithmetic("+"), 2, 2),
    "-": Translation(_arithmetic("-"), 1, 2),
    "unary -": Translation(_negative, 1, 1),
    "*": Translation(_arithmetic("*"), 2, 2),
    "==": Translation(_comparison("=", texts=True), 2, 2),
    "!=": Translation(_comparison("<>", texts=True), 2, 2),
    "<": Translation(_comparison("<", texts=False), 2, 2),
    "<=": Translation(_comparison("<=", texts=False), 2, 2),
    ">": Translation(_comparison(">", texts=False), 2, 2),
    ">=": Translation(_comparison(">=", texts=False), 2, 2),
    "&&": Translation(_logical("AND"), 2, 2),
    "||": Translation(_logical("OR"), 2, 2),
    "!": Translation(lambda arguments: _as_long(f"NOT {_truth(arguments[0])}"), 1, 1),
    "abs": Translation(_number_function("abs", keeps_long=True), 1, 1),
    "case_searched": Translation(_case, 2, _MANY),
    "ceil": Translation(_number_function("ceil", keeps_long=False), 1, 1),
    "coalesce": Translation(_coalesce, 1, _MANY),
    "concat": Translation(_concat, 1, _MANY),
    "contains_string": Translation(_contains, 2, 2, literal_arguments=(1,)),
    "floor": Translation(_number_function("floor", keeps_long=False), 1, 1),
    "if": Translation(_case, 3, 3),
    "isnull": Translation(_is_null("IS NULL"), 1, 1),
    "lower": Translation(_case_changer("lower", _ODD_UPPER, "{0}"), 1, 1),
    "ltrim": Translation(_trimmer("ltrim"), 1, 1),
    "notnull": Translation(_is_null("IS NOT NULL"), 1, 1),
    "nvl": Translation(_coalesce, 2, 2),
    "replace": Translation(_replace, 3, 3, literal_arguments=(1, 2)),
    "rtrim": Translation(_trimmer("rtrim"), 1, 1),
    "sqrt": Translation(_number_function("sqrt", keeps_long=False), 1, 1),
    "trim": Translation(_trimmer("trim"), 1, 1),
    "upper": Translation(_case_changer("upper", _ODD_LOWER, "replace({0}, 'ß', 'SS')"), 1, 1),
}
