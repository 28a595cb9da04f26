"""The changelog, the decisions and the docstrings: in step with the project, and in the house's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.lint.sources import PROJECT, files, name_of, no_faults, text_of, tree_of

DOCS = PROJECT / "docs"
PACKAGES = ("controlplane", "ingestion", "frontend", "headgate", "benchmarks", "tests")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# Those of Keep a Changelog, what to do when upgrading before them.
CHANGELOG_HEADINGS = ("Upgrading", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits")
LONGEST_CHANGELOG_LINE = 140
LEANING = re.compile(r"(The same|As)\b")
# Only files whose text matches are parsed: a string that begins so, and a name followed by its description.
MAY_LEAN = re.compile(r"""["'][\s\\]*(The same|As)\b""")
MAY_DESCRIBE = re.compile(r"``\w+``(,? (and )?``\w+``)*: ")


def test_the_changelog_has_the_projects_version() -> None:
    version = re.search(r'^version = "(.+)"$', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"## [{version[1]}]" in (PROJECT / "CHANGELOG.md").read_text()


def test_the_changelog_can_be_scanned() -> None:
    """What a user must do, then what is new, each thing in one line; who wants more finds it in the other pages."""
    lines = (PROJECT / "CHANGELOG.md").read_text().split("\n## ", 1)[1].splitlines()
    headings = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert headings == [h for h in CHANGELOG_HEADINGS if h in headings], "in this order, none twice, and no other"
    no_faults((line for line in lines if line.startswith(" ")), "one line for each thing; these lines continue one")
    long = (line for line in lines if line.startswith("- ") and len(line) > LONGEST_CHANGELOG_LINE)
    no_faults(long, f"a line has {LONGEST_CHANGELOG_LINE} characters at most")


def test_decisions_are_numbered_and_listed() -> None:
    pages = sorted(p.name for p in (DOCS / "decisions").glob("0*.md"))
    assert [name[:4] for name in pages] == [f"{n + 1:04}" for n in range(len(pages))]
    titles = {name: text_of(DOCS / "decisions" / name).splitlines()[0] for name in pages}
    wrong = (f"{name}: {title}" for name, title in titles.items() if not title.startswith(f"# {name[:4]}: "))
    no_faults(wrong, "the title of a decision begins with its number")
    index = text_of(DOCS / "decisions" / "README.md")
    no_faults((name for name in pages if name not in index), "docs/decisions/README.md does not list these")


def documented(packages: tuple[str, ...], having: re.Pattern[str]) -> Iterator[tuple[str, Documented, str]]:
    """Where it is, what it is, and its docstring."""
    for path in files("*.py", *packages):
        if not having.search(text_of(path)):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Documented) and (text := ast.get_docstring(node)):
                yield f"{name_of(path)}:{getattr(node, 'lineno', 1)}", node, text


def test_a_docstring_can_be_read_by_itself() -> None:
    """One that begins with "The same" or "As" is understood only by those who have read another one first."""
    found = documented(PACKAGES, MAY_LEAN)
    leaning = (f"{place}: {text.splitlines()[0]}" for place, _, text in found if LEANING.match(text))
    no_faults(leaning, "say what it is or does, in words of its own")


def test_an_attribute_is_described_where_it_stands() -> None:
    """Not in the class's docstring, which is read apart from its line and outlives it."""
    apart = (
        f"{place}: {name}"
        for place, node, text in documented(PACKAGES[:-1], MAY_DESCRIBE)  # a test's classes are small
        if isinstance(node, ast.ClassDef)
        for name in attributes(node)
        if re.search(rf"(^|[\s,])``{name}``(,? (and )?``\w+``)*: ", text)
    )
    no_faults(apart, "say it in a comment at the attribute")


def attributes(node: ast.ClassDef) -> Iterator[str]:
    """Those that the class's body names."""
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_no_two_test_files_have_one_name() -> None:
    """Pytest knows a file by its name: of two, whichever a process meets later is not collected."""
    names = [file.name for file in (PROJECT / "tests").rglob("test_*.py")]
    assert [name for name in sorted(set(names)) if names.count(name) > 1] == []
