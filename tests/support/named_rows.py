"""Tables of the documentation whose rows name tests, and the rows that tests name in their docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
Test = tuple[str, str]  # file below tests/, name


def claimed(page: str) -> dict[int, set[Test]]:
    """Row → tests, by the page's table: ``| 7 | … | `file`: `test`, `test`; `file`: `test` |``."""
    found = {}
    for number, cell in re.findall(r"^\| (\d+) \|.*\| (.*) \|$", page, re.MULTILINE):
        files = [part.split(": ") for part in cell.split("; ")]
        found[int(number)] = {(f.strip("`"), t.strip("`")) for f, tests in files for t in tests.split(", ")}
    return found


def shown(of: str) -> dict[int, set[Test]]:
    """Row → the tests whose docstring says ``Row 7 of the <of>``."""
    found: dict[int, set[Test]] = {}
    for number, test in _named(re.compile(rf"Row (\d+) of the {of}")):
        found.setdefault(number, set()).add(test)
    return found


def _named(pattern: re.Pattern[str]) -> Iterator[tuple[int, Test]]:
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if pattern.search(text) else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for number in pattern.findall(ast.get_docstring(node) or ""):
                    yield int(number), (str(file.relative_to(TESTS)), node.name)
