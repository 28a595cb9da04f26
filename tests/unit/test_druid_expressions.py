"""Expressions in Druid's language: what a real Druid made of them, and what is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestion.decode.druid_meaning import MEANINGS
from ingestion.decode.engine import Engine
from ingestion.decode.expression_runner import ExpressionRunner, Results
from ingestion.decode.expressions import BadExpression
from tests.support.druid_recorder import CONDITIONS, EXPRESSIONS, GOLDEN, listed, values

RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
FIELDS: list[str] = RECORDED["values"]
# What may fail here although Druid gives a value: numbers and booleans in texts that are not plainly written, doubles
# as texts (Java writes them in its own way), sums that Druid lets wrap around, lists and objects that Druid takes by
# their first or their text, and letters that Java knows otherwise.
ODD = {'" 7"', '"1e3"', '"true"', '"TRUE"', "[1,2]", '["a"]', '{"k":1}', "[]", "1.7e308"}
WIDE = {"9007199254740993", "9223372036854775807", "-9223372036854775808"}
FRACTIONS = {f for f in FIELDS if f[0] in "-0123456789" and ("." in f or "e" in f)}
AS_TEXT = ("concat(", "upper(", "lower(", "replace(x", "contains_string(x")


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


@pytest.mark.parametrize("name", MEANINGS)
def test_all_that_is_taken_was_held_against_druid(name: str) -> None:
    written = name.removeprefix("unary ") if not name[0].isalpha() or name.startswith("unary") else f"{name}("
    assert any(written in expression for expression in RECORDED["expressions"])


@pytest.mark.parametrize("expression", listed(EXPRESSIONS))
def test_an_expression_gives_what_druid_gives_or_fails(engine: Engine, expression: str) -> None:
    found = run(engine, expression, FIELDS)
    ours = found.texts.to_pylist()
    recorded: list[str | None] = RECORDED["expressions"][expression]
    assert [o for o, failed in zip(ours, found.failed, strict=True) if failed and o is not None] == []
    told = [row for row in zip(FIELDS, ours, recorded, found.failed, strict=True) if not row[3]]
    assert [row for row in told if row[2] is None or not same(row[1], row[2])] == []
    missed = {
        f for f, r, failed in zip(FIELDS, recorded, found.failed, strict=True) if failed and r not in (None, "null")
    }
    assert missed <= may_fail(expression)


def may_fail(expression: str) -> set[str]:
    """Never plain texts, whole numbers, null and booleans; fractions where texts are made of them."""
    found = ODD | WIDE
    if any(function in expression.lower() for function in AS_TEXT):
        found |= FRACTIONS
    if "lower(" in expression:
        found |= {'"ß é Σ 😀"'}
    if "sqrt(" in expression:
        found |= {f for f in FIELDS if f.startswith("-")}
    return found


@pytest.mark.parametrize("condition", listed(CONDITIONS))
def test_a_filter_keeps_what_druid_keeps_or_fails(engine: Engine, condition: str) -> None:
    found = run(engine, condition, FIELDS, condition=True)
    kept = {i for i, text in enumerate(found.texts.to_pylist()) if text == "true"}
    failed = set(np.flatnonzero(found.failed).tolist())
    assert {FIELDS[i] for i in failed} <= may_fail(condition)
    assert kept == set(RECORDED["conditions"][condition]) - failed


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
    ("substring(x, 0, 3)", "function 'substring'"),
    ("strpos(x, 'a')", "function 'strpos'"),
    ("strlen(x)", "function 'strlen'"),
    ("log(x)", "function 'log'"),
    ("regexp_replace(x, 'a', 'b')", "function 'regexp_replace'"),
    ("STRLEN(x)", "function 'strlen'"),
    ("x / 2", "operator '/'"),
    ("x % 2", "operator '%'"),
    ("x ^ 2", "operator '^'"),
    ("[1, 2]", "operator '['"),
    ("x[0]", "operator '['"),
    ("map((y) -> y + 1, x)", "operator '->'"),
    ("array_length(x)", "function 'array_length'"),
    ("timestamp_floor(__time, 'PT1H')", "function 'timestamp_floor'"),
    ("getenv('HOME')", "function 'getenv'"),
    ("x::BIGINT", "':'"),
    ("x = 1", "'='"),
    ("CASE WHEN x > 1 THEN 2 END", "'WHEN'"),
    ("x IS NULL", "'IS'"),
    ("x IN ('a')", "'IN'"),
    ("a.b", "'a.b'"),
    (".5", "'.5'"),
    ("0x1F", "'0x1F'"),
    ("1_000", "'1_000'"),
    (r"'it\'s'", "a \\ in it"),
    ("'it''s'", "is not expected"),
    ("'open", "without its end"),
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
        ("9223372036854775808", "is beyond a long"),
        ("1e400", "is beyond a double"),
        ("upper()", "'upper' takes 1 to 1 arguments, not 0"),
        ("upper(x, 'de')", "'upper' takes 1 to 1 arguments, not 2"),
        ("contains_string(x, l)", "argument 2 of 'contains_string' must be a text, written out"),
        ("replace(x, '', 'b')", "argument 2 of 'replace' must not be empty"),
        ("(x", "')' is missing"),
        ("x +", "something is missing before"),
        ("", "something is missing"),
        ("(" * 100 + "x" + ")" * 100, "nested more than 60 levels"),
        ("-" * 100 + "x", "nested more than 60 levels"),
        ("+".join(["x"] * 100), "nested more than 60 levels"),
        ("upper(lower(" * 8 + "x" + "))" * 8, "too entangled"),
        ("replace(x, 'a', '" + "b" * 200 + "')", "200 times as long"),
    ],
)
def test_an_expression_that_cannot_be_taken_says_why(engine: Engine, expression: str, message: str) -> None:
    with pytest.raises(BadExpression, match=message.replace("(", r"\(").replace(")", r"\)")):
        ExpressionRunner(engine, expression, "druid")
