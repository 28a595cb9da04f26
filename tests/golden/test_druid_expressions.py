"""Expressions in Druid's language: what a real Druid made of them, and what is refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestion.decode.druid_functions import FUNCTIONS
from ingestion.decode.engine import Engine
from ingestion.decode.expression_runner import ExpressionRunner, Results
from ingestion.decode.expressions import BadExpression
from tests.support.druid_corpus import cases
from tests.support.druid_recorder import CONDITIONS, EXPRESSIONS, GOLDEN, listed, values
from tests.support.druid_tables import PAGE

RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
FIELDS: list[str] = RECORDED["values"]
# What may fail here although Druid gives a value: where a number is asked of lists and objects, and times beyond the
# years 1 to 9999. NaN, infinities and halves of characters may fail always: they can't be stored.
LISTS = {"[1,2]", '["a"]', '{"k":1}', "[]"}
BEYOND_YEARS = {"9007199254740993", "9223372036854775807", "-9223372036854775808", "1.7e308", "0", "-5", "false"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = Engine(256 * 1024 * 1024)
    yield found
    found.close()


def run(engine: Engine, expression: str, fields: list[str], condition: bool = False) -> Results:
    count = len(fields)
    columns = {
        "x": pa.array([None if f == "null" else f for f in fields], pa.string()),
        "s": pa.array(['"a"'] * count),
        "l": pa.array(["3"] * count),
        "d": pa.array(["2.5"] * count),
        **dict.fromkeys(("n", "X"), pa.nulls(count, pa.string())),
    }
    runner = ExpressionRunner(engine, expression, "druid", condition)
    return runner.run(columns, np.zeros(count, np.int64), np.full(count, 10_000))


def same(ours: str | None, recorded: str) -> bool:
    """Of the same type too: 1 is not 1.0."""
    one, other = json.loads(ours or "null"), json.loads(recorded)
    return type(one) is type(other) and one == other and str(one) == str(other)


def test_what_is_asked_here_was_recorded() -> None:
    assert RECORDED["druid"] == "33.0.0"
    assert values() == FIELDS
    assert listed(EXPRESSIONS) == list(RECORDED["expressions"])
    assert listed(CONDITIONS) == list(RECORDED["conditions"])


def test_all_that_is_taken_was_held_against_druid() -> None:
    of_cases = [case.name for case in cases() if case.section.startswith("expressions")]
    asked = "\n".join([*RECORDED["expressions"], *of_cases]).lower()
    assert [name for name in FUNCTIONS if as_written(name) not in asked] == []


def as_written(function: str) -> str:
    """How an expression that has this function or operator begins it."""
    is_sign = not function[0].isalpha() or function.startswith("unary")
    return function.removeprefix("unary ") if is_sign else f"{function}("


def test_the_reference_names_all_that_is_taken() -> None:
    page = (PAGE.parent / "reference" / "filters-and-expressions.md").read_text(encoding="utf-8")
    section = page.split("### In Druid's language")[1].split("### In SQL")[0]
    rows = re.findall(r"^\| ((?:`[^`]+` ?)+)\|", section, re.MULTILINE)
    named = {name.replace("\\", "").lower() for row in rows for name in re.findall("`([^`]+)`", row)}
    assert named == {name for name in FUNCTIONS if name != "unary -"}


def test_an_expression_gives_what_druid_gives_or_fails(engine: Engine) -> None:
    differences = {expression: difference(engine, expression) for expression in listed(EXPRESSIONS)}
    assert {expression: rows for expression, rows in differences.items() if rows} == {}


def difference(engine: Engine, expression: str) -> list[object]:
    """The fields, each with its results, of which ours are not Druid's; and those that fail and should not."""
    found = run(engine, expression, FIELDS)
    ours = found.texts.to_pylist()
    recorded: list[str | None] = RECORDED["expressions"][expression]
    rows = list(zip(FIELDS, ours, recorded, found.failed.tolist(), strict=True))
    others = [row for row in rows if not row[3] and (row[2] is None or not same(row[1], row[2]))]
    failed_with_a_value = [row for row in rows if row[3] and row[1] is not None]
    missed = {f for f, _, r, failed in rows if failed and r not in (None, "null") and not unstorable(r)}
    return [*others, *failed_with_a_value, *sorted(missed - may_fail(expression))]


def unstorable(result: str) -> bool:
    found = json.loads(result)
    return found in ("NaN", "Infinity", "-Infinity") or bool(
        isinstance(found, str) and re.search("[\ud800-\udfff]", found)
    )


def may_fail(expression: str) -> set[str]:
    """Never plain texts and numbers, null and booleans, but as times."""
    return LISTS | BEYOND_YEARS if "timestamp_" in expression else LISTS


def test_a_filter_keeps_what_druid_keeps_or_fails(engine: Engine) -> None:
    differences = {condition: kept_otherwise(engine, condition) for condition in listed(CONDITIONS)}
    assert {condition: fields for condition, fields in differences.items() if fields} == {}


def kept_otherwise(engine: Engine, condition: str) -> list[str]:
    """The fields that Druid keeps and ours does not, or the other way round; and those that fail and should not."""
    found = run(engine, condition, FIELDS, condition=True)
    kept = {i for i, text in enumerate(found.texts.to_pylist()) if text == "true"}
    failed = set(np.flatnonzero(found.failed).tolist())
    others = kept ^ (set(RECORDED["conditions"][condition]) - failed)
    return sorted({FIELDS[i] for i in others} | ({FIELDS[i] for i in failed} - may_fail(condition)))


@pytest.mark.parametrize("function", ["upper", "lower"])
def test_letters_in_upper_and_lower_case(engine: Engine, function: str) -> None:
    every = list(RECORDED["letters"])
    found = run(engine, f"{function}(x)", [json.dumps(letter) for letter in every])
    ours = [None if t is None else json.loads(t) for t in found.texts.to_pylist()]
    pairs = list(zip(every, ours, RECORDED[function], strict=True))
    assert [p for p in pairs if p[1] is not None and p[1] != p[2]] == []
    common = [p for p in pairs if p[0] < "\u0530" and p[0] not in "ŉǰΐΰİΣ"]
    assert [p for p in common if p[1] is None] == []


REFUSED = [
    ("length(x)", "function 'length'"),
    ("LENGTH(x)", "function 'length'"),
    ("json_paths(x)", "function 'json_paths'"),
    ("lookup(x, 'l')", "function 'lookup'"),
    ("getenv('HOME')", "function 'getenv'"),
    ("x::BIGINT", "':'"),
    ("x = 1", "'='"),
    ("CASE WHEN x > 1 THEN 2 END", "'WHEN'"),
    ("x IS NULL", "'IS'"),
    ("x IN ('a')", "'IN'"),
    ("x[0]", "'['"),
    ("a.b", "'a.b'"),
    ('concat("k", kafka.topic)', 'write "kafka.topic" in quotes'),
    (".5", "'.5'"),
    ("0x1F", "'0x1F'"),
    ("1_000", "'1_000'"),
    (r"'it\qs'", "has a \\ before a letter"),
    ("'it''s'", "is not expected"),
    ("'open", "a text or name has no closing quote"),
]


@pytest.mark.parametrize(("expression", "named"), REFUSED)
def test_what_would_mean_something_else_is_refused_by_name(engine: Engine, expression: str, named: str) -> None:
    with pytest.raises(BadExpression) as raised:
        ExpressionRunner(engine, expression, "druid")
    assert named in str(raised.value)
    assert '"language": "sql"' in str(raised.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9223372036854775808", "is out of the range of a long"),
        ("1e400", "is out of the range of a double"),
        ("upper()", "'upper' takes 1 to 1 arguments, not 0"),
        ("upper(x, 'de')", "'upper' takes 1 to 1 arguments, not 2"),
        ("contains_string(x, l)", "argument 2 of 'contains_string' must be a text literal"),
        ("timestamp_floor(x, s)", "argument 2 of 'timestamp_floor' must be a text literal"),
        ("timestamp_floor(x, 'P1Z')", "argument 2 of 'timestamp_floor': period 'P1Z'"),
        ("timestamp_floor(x, 'P1D', null, 'No/Where')", "'No/Where' is neither a time zone's name"),
        ("timestamp_format(x, 'QQ')", "'QQ' in the pattern 'QQ' is not supported"),
        ("timestamp_parse(x, 'zzzz')", "long names of time zones are not read"),
        ("timestamp_format(x, 'z', 'Asia/Tokyo')", "works only with UTC"),
        ("timestamp_extract(x, 'ERA')", "'ERA' is not one of EPOCH, MILLISECOND"),
        ("cast(x, 'INT')", "'INT' is not one of LONG"),
        ("regexp_like(x, '(?=a)')", "the pattern '(?=a)' is not supported: (?=a: lookaround"),
        ("regexp_like(x, '[a&&\\\\p{L}]')", "a property such as"),
        ("regexp_like(x, 'b(?d){2}')", "a repetition sign after flags"),
        ("regexp_like(x, '[a&&[b]c]')", "character classes mixed with other characters"),
        ("regexp_like(x, '(?<n>a)(?<n>b)')", "two groups named n"),
        ("regexp_like(x, '" + "[" * 60 + "')", "nested more than 50 deep"),
        ("regexp_like(x, '(?U)a')", "and other flags"),
        ("json_value(x, 'a')", "the path 'a' must begin with $"),
        ("json_value(x, '$.a[*]')", "only .name, ['name'] and [0] are"),
        ("ipv4_match(x, '10.0.0.0')", "'10.0.0.0' is not a subnet"),
        ("[1, 'a']", "texts or numbers, not both"),
        ("<INT>[]", "an array is of LONG, DOUBLE or STRING, not 'INT'"),
        ("map(1, x)", "argument 1 of 'map' must be a function such as (x) -> x + 1"),
        ("map((y, z) -> y, x)", "the function in 'map' must take 1, not 2"),
        ("upper((y) -> y)", "'upper' takes no function as this argument"),
        ("(x", "')' is missing"),
        ("x +", "the expression ends too early"),
        ("", "the expression ends too early"),
        ("(" * 100 + "x" + ")" * 100, "nested more than 60 levels"),
        ("-" * 100 + "x", "nested more than 60 levels"),
        ("+".join(["x"] * 100), "nested more than 60 levels"),
    ],
)
def test_an_expression_that_cannot_be_taken_says_why(engine: Engine, expression: str, message: str) -> None:
    with pytest.raises(BadExpression, match=re.escape(message)):
        ExpressionRunner(engine, expression, "druid")
