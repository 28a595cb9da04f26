"""What an expression may cost: nothing that a spec says, and no record, makes much out of little or takes for ever."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.engine import TEXTS, Engine
from ingestion.decode.expression_runner import ExpressionRunner
from ingestion.decode.expressions import BadExpression, parse_expression
from ingestion.decode.scalar_functions import ALLOWED

MB = 1024 * 1024


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = Engine(256 * MB)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1" + "+1" * 4999, "can't be read|levels deep"),
        ("a" + "+1" * 150, "nested more than 100 levels deep"),
        ("(" * 31 + "a" + ")" * 31, "brackets are nested more than 30 levels deep"),
        ("CASE WHEN a THEN " * 31 + "1" + " END" * 31, "brackets are nested more than 30 levels deep"),
        ("date(" * 25 + "a" + ")" * 25, "too complex"),
        ("a IN (" + ",".join(["1"] * 2500) + ")", "more than 2,000 parts"),
        ("replace(replace(a, 'a', 'bbbbbbbbbbbb'), 'b', 'cccccccccccc')", "up to 144 times as long as a field"),
        ("replace(a, 'x', b)", "the replacement in 'replace' must be a constant text"),
        ("regexp_replace(a, 'x', b)", "the replacement in 'regexp_replace' must be a constant text"),
        (r"regexp_replace(a, 'x*', '" + r"\0" * 60 + "', 'g')", "times as long as a field"),
        ("array_to_string(string_split(a, ''), b)", "must be a constant text"),
        ("hex(hex(hex(hex(hex(hex(hex(a)))))))", "up to 128 times as long as a field"),
        ("||".join(["a"] * 101), "up to 101 times as long as a field|levels deep"),
        ("concat(" + ",".join(["a"] * 101) + ")", "up to 101 times as long as a field"),
        ("hex(hex('" + "x" * 5000 + "'))", "bytes for empty fields"),
        ("regexp_matches(a, b)", "argument 2 of 'regexp_matches' must be a constant text"),
        ("regexp_matches(a, '" + "x" * 1001 + "')", "longer than 1,000 bytes"),
        ("a LIKE b", "argument 2 of '~~' must be a constant text"),
        ("timezone(a, __time)", "argument 1 of 'timezone' must be a constant text"),
        ("CAST(NULL AS INTEGER[100000])", "can't cast to array"),
        ("CAST(a AS STRUCT(x INTEGER[100000])[])", "can't cast to array"),
        ("levenshtein(a, b)", "not supported in expressions"),
        ("json_merge_patch(a, b)", "not supported in expressions"),
        ("repeat(a, 1000)", "not supported in expressions|can't contain"),
    ],
    ids=lambda value: value[:40],
)
def test_what_could_cost_much_is_refused(engine: Engine, text: str, message: str) -> None:
    """Row 17 of the security checklist: an expression that could take all time or memory."""
    began = time.thread_time()
    with pytest.raises(BadExpression, match=message) as caught:
        parse_expression(text, engine)
    assert len(str(caught.value)) < 400
    assert time.thread_time() - began < 30  # not a speed: hours without a limit


@pytest.mark.parametrize(
    "text",
    [
        "replace(replace(replace(a, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')",
        "array_to_string(list_distinct(string_split(a, ',')), ';')",
        "upper(trim((a::JSON)->>'$.x'))",
        r"regexp_replace(a, '(\d+)-(\d+)', '\2-\1', 'g')",
        "CASE " + " ".join(f"WHEN a = {n} THEN 'x{n}'" for n in range(200)) + " END",
        "a IN (" + ",".join(f"'{n}'" for n in range(1500)) + ")",
        "concat_ws('-', " + ", ".join(f"f{n}" for n in range(90)) + ")",
        "strftime(__time AT TIME ZONE 'Europe/Zurich', '%Y-%m-%dT%H')",
        "replace(a, chr(10), ' ')",
        "a LIKE '%x_' AND b NOT ILIKE 'y!%' ESCAPE '!'",
    ],
    ids=lambda value: value[:40],
)
def test_what_people_write_is_taken(engine: Engine, text: str) -> None:
    ExpressionRunner(engine, text)


# Whether the bounds hold: what a function makes is compared with what was foretold.

_ARGUMENTS = [
    "a",
    "b",
    "string_split(a, '')",
    "a::BLOB",
    "TRY_CAST(a AS JSON)",
    "'x'",
    "''",
    r"'\0\0'",
    "'(.)'",
    "'%c'",
    "'$'",
    "7",
    "-2",
    "make_timestamp(1)",
    "[a, b]",
    "{'k': a}",
    "MAP {'k': a}",
]
_NUMBERS = ["7", "-2", "length(a)"]
_ARGUMENTS_OF = {
    "VARCHAR": ["a", "b", "'x'", "''", r"'\0\0'", "'(.)'", "'%c'", "'$'", "'day'"],
    "BLOB": ["a::BLOB"],
    "JSON": ["TRY_CAST(a AS JSON)"],
    "VARCHAR[]": ["string_split(a, '')", "[a, b]", "['day', '$']"],
    "ANY[]": ["string_split(a, '')", "[a, b]", "[7, 8]"],
    "T[]": ["string_split(a, '')", "[a, b]", "[[a], [b]]"],
    "MAP(K, V)": ["MAP {'k': a}"],
    "K": ["'k'", "a"],
    "STRUCT": ["{'k': a}"],
    "TUPLE": ["{'k': a}"],
    "INTERVAL": ["to_days(7)"],
    "BIGINT": _NUMBERS,
    "INTEGER": _NUMBERS,
    "DOUBLE": ["0.25", "7", "length(a)"],
}
_TIMES = ("DATE", "TIME")  # their types' names begin so
_TEXTS = ["ab," * 300, '"\\' * 400, "\x01" * 500, "\u1e9e\u0958" * 200, "%&<>" * 200, "[" + ",".join(["1"] * 400) + "]"]


def _made(engine: Engine, text: str, fields: list[str]) -> tuple[float, int] | None:
    """(bytes foretold, bytes made); None where the expression makes no sense."""
    try:
        expression = parse_expression(text, engine)
        form = expression.form({})
        assert form is not None
    except BadExpression:
        return None
    columns = pa.table([pa.array([f]) for f in fields], names=["a", "b"])
    names = ", ".join(f"{name} AS c{i}" for i, name in enumerate(expression.columns)) or "0 AS nothing"
    given = "FROM (SELECT e AS a, reverse(e) AS b FROM texts)"
    sql = f"SELECT octet_length(encode(({form.sql})::VARCHAR)) FROM (SELECT {names} {given})"
    try:
        found = engine.value(sql, TEXTS, pa.table({"e": [fields[0]]}))
    except duckdb.Error:
        return None
    finally:
        engine.forget(sql)
    return form.measured.made.bytes_of(columns), int(found or 0)


def _signatures(engine: Engine, name: str) -> list[list[str]]:
    """The types of the function's parameters, for each way to call it; of any number three."""
    known = "SELECT parameter_types, varargs FROM duckdb_functions() WHERE function_name = ?"
    found = [([t or "ANY" for t in types], more) for types, more in engine.execute(known, [name]).fetchall()]
    return [types + [more] * count for types, more in found for count in ((1, 3) if more else (0,))]


def _argument(kind: str, rng: random.Random) -> str:
    """An expression of that type, or of any."""
    if kind.startswith(_TIMES):
        return f"make_timestamp(1)::{kind}"
    return rng.choice(_ARGUMENTS_OF.get(kind, _ARGUMENTS))


def test_no_function_makes_more_than_was_foretold(engine: Engine) -> None:
    """All of them, by all their signatures, and on arguments of other kinds."""
    names = sorted(name for name in ALLOWED if name[0].isalpha())
    found = [fault for name in names for fault in _calls_that_make_more(engine, name)]
    assert not found, "\n".join(["these calls make more than was foretold:", *found])


def _calls_that_make_more(engine: Engine, name: str) -> Iterator[str]:
    """Calls of a function whose result is larger than foretold, with both sizes."""
    rng = random.Random(name)
    signatures = _signatures(engine, name) or [["ANY"] * 2]
    calls = [[_argument(kind, rng) for kind in types] for types in signatures]
    calls += [rng.choices(_ARGUMENTS, k=len(types)) for types in signatures[:2]]
    for call in calls:
        text = f"{name}({', '.join(call)})"
        field = rng.choice(_TEXTS)
        found = _made(engine, text, [field, field[::-1]])
        if found is not None and found[1] > found[0]:
            yield f"{text} makes {found[1]} bytes; {found[0]} were foretold"


_CALLS_OF_ONE = [
    *("upper({})", "hex({})", "url_encode({})", "to_json({})", "string_split({}, '')", "({})::VARCHAR", "trim({})"),
    *("replace({}, 'a', 'xyz')", "regexp_replace({}, 'a*', '<>', 'g')", "array_to_string({}, '--')", "({})::BLOB"),
    *("[{}, 'x']", "regexp_escape({})", "left({}, 5)", "({})::JSON", "json_extract({}, ['$', '$'])", "md5({})"),
    *("regexp_extract_all({}, '.')", "CASE WHEN a > 'x' THEN {} ELSE b END", "{{'k': {}}}", "to_base64(encode({}))"),
]
_CALLS_OF_TWO = [
    "{} || {}",
    "concat({}, {})",
    "concat_ws('; ', {}, {})",
    "[{}, {}]",
    "coalesce({}, {})",
    "if(true, {}, {})",
]
_EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "'x'", "7"]),
    lambda inner: (
        st.builds(str.format, st.sampled_from(_CALLS_OF_ONE), inner)
        | st.builds(str.format, st.sampled_from(_CALLS_OF_TWO), inner, inner)
    ),
    max_leaves=4,
)


@settings(max_examples=300)
@given(text=_EXPRESSIONS, field=st.sampled_from(_TEXTS) | st.text(max_size=50))
def test_nothing_made_of_them_makes_more_than_was_foretold(engine: Engine, text: str, field: str) -> None:
    found = _made(engine, text, [field, field[::-1]])
    assert found is None or found[1] <= found[0]
