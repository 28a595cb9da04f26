"""The changelog, the decisions and the docstrings: in step with the project, and in the house's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
PACKAGES = ("controlplane", "ingestion", "frontend", "headgate", "benchmarks", "tests")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# Those of Keep a Changelog, what to do when upgrading before them.
CHANGELOG_HEADINGS = ("Upgrading", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits")
LONGEST_CHANGELOG_LINE = 140
LEANING = re.compile(r"(The same|As)\b")


def test_the_changelog_has_the_projects_version() -> None:
    version = re.search(r'^version = "(.+)"$', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"## [{version[1]}]" in (PROJECT / "CHANGELOG.md").read_text()


def test_the_changelog_can_be_scanned() -> None:
    """What a user must do, then what is new, each thing in one line; who wants more finds it in the other pages."""
    lines = (PROJECT / "CHANGELOG.md").read_text().split("\n## ", 1)[1].splitlines()
    headings = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert headings == [h for h in CHANGELOG_HEADINGS if h in headings], "in this order, none twice, and no other"
    for line in lines:
        if line.startswith(("- ", " ")):
            assert line.startswith("- "), f"one line for each thing: {line!r} goes on from the one before"
            assert len(line) <= LONGEST_CHANGELOG_LINE, f"too long to be scanned: {line!r}"


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


@pytest.mark.parametrize("package", PACKAGES[:-1])  # a test's classes are small
def test_an_attribute_is_described_where_it_stands(package: str) -> None:
    """Not in the class's docstring, which is read apart from its line and outlives it."""
    apart = [
        f"{place}: {name}"
        for place, node, text in documented(package)
        if isinstance(node, ast.ClassDef)
        for name in attributes(node)
        if re.search(rf"(^|[\s,])``{name}``(,? (and )?``\w+``)*: ", text)
    ]
    assert not apart, "say it in a comment at the attribute:\n" + "\n".join(apart)


def attributes(node: ast.ClassDef) -> Iterator[str]:
    """Those that the class's body names."""
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_no_two_test_files_have_one_name() -> None:
    """Pytest knows a file by its name: of two, whichever a process meets later is not collected."""
    names = [file.name for file in (PROJECT / "tests").rglob("test_*.py")]
    assert [name for name in sorted(set(names)) if names.count(name) > 1] == []
