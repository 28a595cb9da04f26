"""The changelog, the decisions and the docstrings: in step with the project, and in the house's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
PACKAGES = ("controlplane", "ingestion", "frontend", "benchmarks")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
LEANING = re.compile(r"(The same|As)\b")


def test_the_changelog_has_the_projects_version() -> None:
    version = re.search(r'^version = "(.+)"$', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"## [{version[1]}]" in (PROJECT / "CHANGELOG.md").read_text()


def test_decisions_are_numbered_and_listed() -> None:
    pages = sorted(p.name for p in (DOCS / "decisions").glob("0*.md"))
    assert [name[:4] for name in pages] == [f"{n + 1:04}" for n in range(len(pages))]
    index = (DOCS / "decisions" / "README.md").read_text()
    for name in pages:
        title = (DOCS / "decisions" / name).read_text().splitlines()[0]
        assert title.startswith(f"# {name[:4]}: ")
        assert name in index


def documented(package: str) -> Iterator[tuple[str, Documented, str]]:
    """Where it is, what it is, and its docstring."""
    for file in sorted((PROJECT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, Documented) and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(PROJECT)}:{getattr(node, 'lineno', 1)}", node, text


@pytest.mark.parametrize("package", PACKAGES)
def test_a_docstring_can_be_read_by_itself(package: str) -> None:
    """One that begins with "The same" or "As" is understood only by those who have read another one first."""
    leaning = [f"{place}: {text.splitlines()[0]}" for place, _, text in documented(package) if LEANING.match(text)]
    assert not leaning, "say what it is or does, in words of its own:\n" + "\n".join(leaning)
