"""``regex``, by Druid's reference and by what a real one answers (see the corpus)."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.decode.errors import UnusableSchema
from ingestion.specs.messages.checking import CheckOrder
from ingestion.task.check_spec import find_issues
from tests.support.formats import decoded, fault, format_of, rows, schema_of


def regex(pattern: str, *columns: str, **more: Any) -> dict[str, Any]:
    return {"type": "regex", "pattern": pattern, "columns": list(columns)} | more


def test_groups_are_values() -> None:
    found = decoded(regex(r"(\d+) (\w*)( \w+)?", "t", "a", "b"), [b"0 x y", b"1 ", b"2 z"])
    assert rows(found) == [{"a": "x", "b": " y"}, {"a": ""}, {"a": "z"}]


def test_the_whole_text_has_to_match() -> None:
    found = decoded(regex(r"(\d+)", "t"), [b"0", b"0 ", b"x0", "٣".encode(), b"\xff"])
    assert found.rows.num_rows == 1
    assert {i: text.split(":")[0] for i, text in found.unparseable.items()} == {
        1: "the pattern does not match",
        2: "the pattern does not match",
        3: "the pattern does not match",
        4: "not UTF-8",
    }


def test_a_text_on_which_java_may_see_something_else_is_unparseable() -> None:
    assert "Java may match" in fault(regex(r"(\d) (k\b.*)", "t", "a"), "1 k\u212a".encode())


def test_case_that_does_not_count_is_that_of_ascii() -> None:
    """Without the flag u the sign of the kelvin is no k to Java."""
    assert "does not match" in fault(regex(r"(?i)(\d) (k)", "t", "a"), "1 \u212a".encode())
    assert decoded(regex(r"(?i)(\d) (k)", "t", "a"), [b"1 K"]).rows.num_rows == 1


def test_lists() -> None:
    schema = schema_of(dimensions=["a"])
    found = decoded(regex(r"(\d+) (.*)", "t", "a", listDelimiter="|"), [b"0 q|p", b"0 r"], schema=schema)
    assert found.rows.column("a").to_pylist() == [["p", "q"], ["r"]]


@pytest.mark.parametrize("pattern", ["[", r"(\d+)(?= )", r"(a)\1", "a++", r"(?U)a"])
def test_a_pattern_that_means_something_else_is_refused_where_it_stands(pattern: str) -> None:
    written = format_of(regex(pattern, "t"))
    with pytest.raises(UnusableSchema):
        decoded(regex(pattern, "t"), [b"0"])
    [issue] = find_issues(
        CheckOrder(data_schema=schema_of(), input_format=written, reads_files=False, schema_folder="")
    )
    assert issue.place == ["ioConfig", "inputFormat", "pattern"]
