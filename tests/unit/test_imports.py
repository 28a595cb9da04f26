"""What import-linter can't say: an import of ours within a function has a reason, and a cycle is none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
OURS = ("controlplane", "frontend", "ingestion")
REASON = "# not at the top: "


def late_imports(source: str) -> Iterator[ast.ImportFrom | ast.Import]:
    """Those of our own modules within a function."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else names
            if any(name.split(".")[0] in OURS for name in names):
                yield node  # type: ignore[misc]  # only the two kinds have names


def without_reason(source: str) -> list[int]:
    """The numbers of the lines with such an import, and no reason on it or on the line above."""
    lines = source.splitlines()
    return [
        node.lineno
        for node in late_imports(source)
        if not any(REASON in line for line in lines[max(0, node.lineno - 2) : node.lineno])
    ]


def test_an_import_within_a_function_says_why_it_is_not_at_the_top() -> None:
    found = [
        f"{file.relative_to(PROJECT)}:{line}"
        for package in OURS
        for file in sorted((PROJECT / package).rglob("*.py"))
        for line in without_reason(file.read_text())
    ]
    assert found == []


def test_one_without_a_reason_is_found() -> None:
    late = "def f():\n    from ingestion import rows{}\n    return rows\n"
    assert without_reason(late.format("")) == [2]
    assert without_reason(late.format(f"  {REASON}it takes long")) == []
    assert without_reason("def f():\n    import controlplane.tasks\n") == [2]
    assert without_reason("from ingestion import rows\ndef f():\n    import os\n") == []
