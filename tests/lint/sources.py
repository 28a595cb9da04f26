"""The project's files as the rules read them. Each file is read once and parsed once, for all rules of a process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@cache
def files(pattern: str, *folders: str) -> tuple[Path, ...]:
    """All files below the folders whose names match. A folder without any is an error: its rule would check nothing."""
    found = {folder: sorted((PROJECT / folder).rglob(pattern)) for folder in folders}
    assert all(found.values()), (
        f"a folder has no {pattern}: {[folder for folder, inside in found.items() if not inside]}"
    )
    return tuple(path for inside in found.values() for path in inside)


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def forget() -> None:
    """Free the memory: no test outside of this folder needs the trees."""
    for cached in (files, text_of, tree_of):
        cached.cache_clear()


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def places(pattern: str, path: Path, text: str | None = None) -> Iterator[str]:
    """``file:line: what matches``, for each match in a file, or in the given text of it."""
    text = text_of(path) if text is None else text
    for match in re.finditer(pattern, text):
        yield f"{name_of(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}"


def no_faults(faults: Iterable[str], rule: str) -> None:
    """Fail with the rule and with every fault, each on a line: pytest cuts the comparison of two lists."""
    if found := list(faults):
        pytest.fail("\n".join([f"{rule} ({len(found)} faults):", *found]), pytrace=False)


def differences(documented: Iterable[str], real: Iterable[str]) -> Iterator[str]:
    """Each name that only the documentation or only the code has."""
    described, there = set(documented), set(real)
    yield from (f"{name}: is not described" for name in sorted(there - described))
    yield from (f"{name}: is described, but does not exist" for name in sorted(described - there))
