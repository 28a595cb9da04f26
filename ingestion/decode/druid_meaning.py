"""What some of Druid's functions and operators mean in DuckDB's SQL, for arguments of each kind: many records at once.

``MEANINGS`` are those that SQL can say. Each was held against a real Druid (``tests/golden``): for arguments of the
kinds that it takes it gives the same, or fails. Where it fails, and for all else, ``druid_evaluator`` looks at the
record.

Booleans are longs 1 and 0, as in Druid; true is what is greater than 0. Sums that a long can't hold fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ingestion.decode.druid_language import Call, Field, Lambda, Literal, Node
from ingestion.decode.druid_values import Array
from ingestion.decode.engine import literal
from ingestion.decode.kinds import BOOLEAN, DOUBLE, LONG, NULL, STRING

# Of these letters DuckDB makes others than Java does: several letters, or letters that are younger than Java's Unicode.
_ODD_LOWER = "\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56\u1f80-\u1fff\u2c5f\ua7c1\ua7d1"
_ODD_LOWER += "\ua7d7\ua7d9\ufb00-\ufb17\U00010570-\U000105bf"
_ODD_UPPER = "\u0130\u03a3\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8\U00010570-\U000105bf"
_LONGEST_SQL = 50_000
_FUNCTIONS = {"+": "add", "-": "subtract", "*": "multiply"}


class Unfit(Exception):
    """It makes no sense for these kinds of arguments, or is not known to be the same."""


@dataclass(frozen=True)
class Typed:
    """SQL, with the kind of its value."""

    kind: int
    sql: str
    certain: bool = False  # not null in any record of these kinds


@dataclass(frozen=True)
class Meaning:
    """What a function of Druid's means in SQL."""

    sql: Callable[[Sequence[Typed]], Typed]
    # least and most: how many arguments.
    least: int
    most: int
    written_out: tuple[int, ...] = ()  # which of them have to be texts in the expression


_NOTHING = Typed(NULL, "NULL")


def in_sql(node: Node, kinds: Mapping[str, int], columns: Mapping[str, str]) -> Typed:
    """The expression over ``columns`` (field → SQL name) of these ``kinds``. Raises ``Unfit``."""
    if isinstance(node, Literal):
        return _constant(node.value)
    if isinstance(node, Lambda):
        raise Unfit
    if isinstance(node, Field):
        kind = kinds[node.name]
        return _NOTHING if kind == NULL else Typed(LONG if kind == BOOLEAN else kind, columns[node.name], certain=True)
    typed = _meaning(node).sql([in_sql(a, kinds, columns) for a in node.arguments])
    if len(typed.sql) > _LONGEST_SQL:
        raise Unfit
    return typed


def result(typed: Typed) -> str:
    """A transform's result. A double that is no number fails: it could not be stored."""
    if typed.kind != DOUBLE:
        return typed.sql
    return (
        f"CASE WHEN isfinite({typed.sql}) THEN {typed.sql} WHEN ({typed.sql}) IS NOT NULL THEN {_fail(typed.sql)} END"
    )


def condition(typed: Typed) -> str:
    """A filter's result: true, false, or null where nothing is known."""
    return _truth(typed)


def _name(call: Call) -> str:
    return "unary -" if call.name == "-" and len(call.arguments) == 1 else call.name


def _meaning(call: Call) -> Meaning:
    """Raises ``Unfit`` where the call has none in SQL."""
    meaning = MEANINGS.get(_name(call))
    if meaning is None or not meaning.least <= len(call.arguments) <= meaning.most:
        raise Unfit
    for place in meaning.written_out:
        argument = call.arguments[place]
        written = argument.value if isinstance(argument, Literal) else None
        if not isinstance(written, str) or (place == 1 and not written):
            raise Unfit
    return meaning


def _constant(value: int | float | str | Array | None) -> Typed:
    if value is None:
        return _NOTHING
    if isinstance(value, Array) or value == -(2**63) or (isinstance(value, str) and "\0" in value):
        raise Unfit
    if isinstance(value, str):
        return Typed(STRING, literal(value), certain=True)
    kind, name = (LONG, "BIGINT") if isinstance(value, int) else (DOUBLE, "DOUBLE")
    return Typed(kind, f"CAST({value!r} AS {name})", certain=True)


def _fail(sql: str) -> str:
    """A double that can't be made: DuckDB's own ``error`` may not be tried."""
    return f"CAST(concat(CAST({sql} AS VARCHAR), '!') AS DOUBLE)"


def _any_null(arguments: Sequence[Typed]) -> bool:
    return any(a.kind == NULL for a in arguments)


def _as_double(argument: Typed) -> str:
    """A number; of a text the number it plainly holds, and null where it holds nothing like one."""
    if argument.kind in (LONG, DOUBLE):
        return f"CAST({argument.sql} AS DOUBLE)"
    if argument.kind != STRING:
        raise Unfit
    text = argument.sql
    plain = f"regexp_full_match({text}, '[-+]?[0-9]{{1,15}}(\\.[0-9]{{1,15}})?')"
    no_number = f"NOT regexp_matches({text}, '(?i)[0-9]|nan|infinity|true|false')"
    return f"CASE WHEN {plain} THEN CAST({text} AS DOUBLE) WHEN {no_number} THEN NULL ELSE {_fail(text)} END"


def _as_text(argument: Typed) -> str:
    """Texts and longs; Java writes doubles in its own way."""
    if argument.kind == STRING:
        return argument.sql
    if argument.kind == LONG:
        return f"CAST({argument.sql} AS VARCHAR)"
    raise Unfit


def _truth(argument: Typed) -> str:
    if argument.kind == NULL:
        return "CAST(NULL AS BOOLEAN)"
    if argument.kind == STRING:
        return f"(lower({argument.sql}) = 'true')"
    if argument.kind in (LONG, DOUBLE):
        return f"({argument.sql} > 0)"
    raise Unfit


def _arithmetic(sign: str) -> Callable[[Sequence[Typed]], Typed]:
    def made(arguments: Sequence[Typed]) -> Typed:
        one, other = arguments
        if _any_null(arguments):
            return _NOTHING
        if one.kind == other.kind == LONG:
            # Not as an operator: DuckDB would solve comparisons with it, and never meet what a long can't hold.
            return Typed(LONG, f"{_FUNCTIONS[sign]}({one.sql}, {other.sql})")
        if one.kind == other.kind == STRING:
            if sign != "+":
                raise Unfit
            return Typed(STRING, f"({one.sql} || {other.sql})")
        return Typed(DOUBLE, f"({_as_double(one)} {sign} {_as_double(other)})")

    return made


def _negative(arguments: Sequence[Typed]) -> Typed:
    (only,) = arguments
    if only.kind not in (NULL, LONG, DOUBLE):
        raise Unfit
    return only if only.kind == NULL else Typed(only.kind, f"(-{only.sql})")


def _comparison(sign: str, texts: bool) -> Callable[[Sequence[Typed]], Typed]:
    """``texts``: whether two texts can be compared. Which comes first is another matter in Java."""

    def made(arguments: Sequence[Typed]) -> Typed:
        one, other = arguments
        if _any_null(arguments):
            return _NOTHING
        if one.kind == other.kind == STRING and not texts:
            raise Unfit
        if one.kind == other.kind and one.kind in (LONG, STRING):
            return _as_long(f"{one.sql} {sign} {other.sql}")
        return _as_long(f"{_as_double(one)} {sign} {_as_double(other)}")

    return made


def _as_long(truth: str) -> Typed:
    return Typed(LONG, f"CAST(({truth}) AS BIGINT)")


def _logical(word: str) -> Callable[[Sequence[Typed]], Typed]:
    return lambda arguments: _as_long(f" {word} ".join(_truth(a) for a in arguments))


def _concat(arguments: Sequence[Typed]) -> Typed:
    """Null with a null in it."""
    if _any_null(arguments):
        return _NOTHING
    return Typed(STRING, f"({' || '.join(_as_text(a) for a in arguments)})")


def _cased(function: str, odd: str, prepared: str) -> Callable[[Sequence[Typed]], Typed]:
    def made(arguments: Sequence[Typed]) -> Typed:
        if _any_null(arguments):
            return _NOTHING
        text = _as_text(arguments[0])
        fail = f"CAST({_fail(text)} AS VARCHAR)"
        return Typed(
            STRING,
            f"CASE WHEN regexp_matches({text}, '[{odd}]') THEN {fail} ELSE {function}({prepared.format(text)}) END",
        )

    return made


def _first_there(arguments: Sequence[Typed]) -> Typed:
    """``nvl`` and ``coalesce``: of one kind, since another one would have to be told by the value."""
    known = [a for a in arguments if a.kind != NULL]
    if known and known[0].certain:
        return known[0]
    return _of_one_kind(known, lambda sqls: f"coalesce({', '.join(sqls)})")


def _of_one_kind(arguments: Sequence[Typed], made: Callable[[list[str]], str]) -> Typed:
    known = {a.kind for a in arguments if a.kind != NULL}
    if len(known) > 1:
        raise Unfit
    return Typed(known.pop(), made([a.sql for a in arguments])) if known else _NOTHING


def _is_null(word: str) -> Callable[[Sequence[Typed]], Typed]:
    return lambda arguments: _as_long(f"({arguments[0].sql}) {word}")


def _trimmed(function: str) -> Callable[[Sequence[Typed]], Typed]:
    def made(arguments: Sequence[Typed]) -> Typed:
        (only,) = arguments
        return Typed(STRING, f"{function}({only.sql}, ' ')") if only.kind == STRING else only

    return made


def _of_a_number(function: str, kept: bool) -> Callable[[Sequence[Typed]], Typed]:
    """Null of anything else, texts with numbers too. ``kept``: a long stays one."""

    def made(arguments: Sequence[Typed]) -> Typed:
        (only,) = arguments
        if only.kind not in (LONG, DOUBLE):
            return Typed(DOUBLE, "CAST(NULL AS DOUBLE)")
        if kept and only.kind == LONG:
            return Typed(LONG, f"{function}({only.sql})")
        return Typed(DOUBLE, f"{function}({_as_double(only)})")

    return made


def _replaced(arguments: Sequence[Typed]) -> Typed:
    if _any_null(arguments):
        return _NOTHING
    return Typed(STRING, f"replace({', '.join(_as_text(a) for a in arguments)})")


def _contains(arguments: Sequence[Typed]) -> Typed:
    if _any_null(arguments):
        return _NOTHING
    return _as_long(f"contains({_as_text(arguments[0])}, {arguments[1].sql})")


def _chosen(arguments: Sequence[Typed]) -> Typed:
    """``if`` and ``case_searched``: conditions and values by turns, then what else; null without it."""
    conditions = [_truth(a) for a in arguments[:-1:2]]
    values = [*arguments[1::2], arguments[-1]] if len(arguments) % 2 else [*arguments[1::2], _NOTHING]

    def case(sqls: list[str]) -> str:
        checks = [f"WHEN {c} THEN {v}" for c, v in zip(conditions, sqls, strict=False)]
        return f"CASE {' '.join(checks)} ELSE {sqls[-1]} END"

    return _of_one_kind(values, case)


_MANY = 100
MEANINGS: Mapping[str, Meaning] = {
    "+": Meaning(_arithmetic("+"), 2, 2),
    "-": Meaning(_arithmetic("-"), 1, 2),
    "unary -": Meaning(_negative, 1, 1),
    "*": Meaning(_arithmetic("*"), 2, 2),
    "==": Meaning(_comparison("=", texts=True), 2, 2),
    "!=": Meaning(_comparison("<>", texts=True), 2, 2),
    "<": Meaning(_comparison("<", texts=False), 2, 2),
    "<=": Meaning(_comparison("<=", texts=False), 2, 2),
    ">": Meaning(_comparison(">", texts=False), 2, 2),
    ">=": Meaning(_comparison(">=", texts=False), 2, 2),
    "&&": Meaning(_logical("AND"), 2, 2),
    "||": Meaning(_logical("OR"), 2, 2),
    "!": Meaning(lambda arguments: _as_long(f"NOT {_truth(arguments[0])}"), 1, 1),
    "abs": Meaning(_of_a_number("abs", kept=True), 1, 1),
    "case_searched": Meaning(_chosen, 2, _MANY),
    "ceil": Meaning(_of_a_number("ceil", kept=False), 1, 1),
    "coalesce": Meaning(_first_there, 1, _MANY),
    "concat": Meaning(_concat, 1, _MANY),
    "contains_string": Meaning(_contains, 2, 2, written_out=(1,)),
    "floor": Meaning(_of_a_number("floor", kept=False), 1, 1),
    "if": Meaning(_chosen, 3, 3),
    "isnull": Meaning(_is_null("IS NULL"), 1, 1),
    "lower": Meaning(_cased("lower", _ODD_UPPER, "{0}"), 1, 1),
    "ltrim": Meaning(_trimmed("ltrim"), 1, 1),
    "notnull": Meaning(_is_null("IS NOT NULL"), 1, 1),
    "nvl": Meaning(_first_there, 2, 2),
    "replace": Meaning(_replaced, 3, 3, written_out=(1, 2)),
    "rtrim": Meaning(_trimmed("rtrim"), 1, 1),
    "sqrt": Meaning(_of_a_number("sqrt", kept=False), 1, 1),
    "trim": Meaning(_trimmed("trim"), 1, 1),
    "upper": Meaning(_cased("upper", _ODD_LOWER, "replace({0}, 'ß', 'SS')"), 1, 1),
}
