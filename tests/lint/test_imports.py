"""What import-linter can't say: an import of ours within a function has a reason, and a cycle is none.

And no code uses what allauth calls internal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.lint.sources import files, name_of, no_faults, places, text_of, tree_of

OURS = ("controlplane", "frontend", "ingestion")
REASON = "# not at the top: "


def late_imports(tree: ast.Module) -> Iterator[ast.ImportFrom | ast.Import]:
    """Those of our own modules within a function."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else names
            if any(name.split(".")[0] in OURS for name in names):
                yield node  # type: ignore[misc]  # only the two kinds have names


def without_reason(source: str, tree: ast.Module | None = None) -> list[int]:
    """The numbers of the lines with such an import, and no reason on it or on the line above."""
    lines = source.splitlines()
    return [
        node.lineno
        for node in late_imports(tree or ast.parse(source))
        if not any(REASON in line for line in lines[max(0, node.lineno - 2) : node.lineno])
    ]


def test_an_import_within_a_function_says_why_it_is_not_at_the_top() -> None:
    found = (
        f"{name_of(path)}:{line}"
        for path in files("*.py", *OURS)
        for line in without_reason(text_of(path), tree_of(path))
    )
    no_faults(found, f"an import within a function has a comment {REASON!r}")


def test_one_without_a_reason_is_found() -> None:
    late = "def f():\n    from ingestion import rows{}\n    return rows\n"
    assert without_reason(late.format("")) == [2]
    assert without_reason(late.format(f"  {REASON}it takes long")) == []
    assert without_reason("def f():\n    import controlplane.tasks\n") == [2]
    assert without_reason("from ingestion import rows\ndef f():\n    import os\n") == []


def test_nothing_uses_what_allauth_calls_internal() -> None:
    """It may move with any release: allauth's views, forms, adapters and models do not."""
    pattern = r"\ballauth\.[\w.]*internal\b"
    found = (place for path in files("*.py", *OURS, "tests") for place in places(pattern, path))
    no_faults(found, "nothing uses what allauth calls internal")
