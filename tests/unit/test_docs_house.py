"""The changelog and the decisions: kept in step with the project."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"


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
