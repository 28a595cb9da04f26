"""The failure matrix in the documentation names the tests that show each row, and each of them names its row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TESTS = PROJECT / "tests"
PAGE = (PROJECT / "docs" / "failure-matrix.md").read_text()
NAMED = re.compile(r"Row (\d+) of the failure matrix")


def claimed() -> dict[int, set[tuple[str, str]]]:
    """Row → (file, test) by the page's table."""
    found = {}
    for number, cell in re.findall(r"^\| (\d+) \|.*\| (.*) \|$", PAGE, re.MULTILINE):
        files = [part.split(": ") for part in cell.split("; ")]
        found[int(number)] = {(f.strip("`"), t.strip("`")) for f, tests in files for t in tests.split(", ")}
    return found


def named() -> Iterator[tuple[int, tuple[str, str]]]:
    """Every row that a test's docstring names, with the test."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for number in NAMED.findall(ast.get_docstring(node) or ""):
                    yield int(number), (str(file.relative_to(TESTS)), node.name)


def test_every_row_has_its_tests_and_every_test_its_row() -> None:
    shown: dict[int, set[tuple[str, str]]] = {}
    for number, test in named():
        shown.setdefault(number, set()).add(test)
    assert claimed() == shown


def test_no_row_is_left_out() -> None:
    assert sorted(claimed()) == [*range(1, 27), 28]
