"""One module lists a report's counters; whatever else needs all of them asks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ingestion.specs.counters import COUNTERS
from tests.lint.sources import files, name_of, no_faults, tree_of

NAMES = {counter.name for counter in COUNTERS}
# These say more of each than the table does.
WITH_WORDS_OF_THEIR_OWN = {"controlplane/embedded/demo/report.py", "controlplane/tasks/diagnosis.py"}
MANY = 6


def lists_of_counters(tree: ast.AST) -> Iterator[int]:
    """The lines of displays that name as good as all of what they are about: of outcomes, or of details."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            if len(NAMES & {part.value for part in parts if isinstance(part, ast.Constant)}) >= MANY:
                yield node.lineno


def test_nobody_else_lists_them() -> None:
    found = (
        f"{name_of(path)}:{line}"
        for path in files("*.py", "controlplane", "frontend", "ingestion")
        if "migrations" not in path.parts and name_of(path) not in WITH_WORDS_OF_THEIR_OWN
        for line in lists_of_counters(tree_of(path))
    )
    no_faults(found, "only ingestion/specs/counters.py lists the counters")


def test_a_list_is_found() -> None:
    text = f"{tuple(sorted(NAMES)[:MANY])}; {tuple(sorted(NAMES)[: MANY - 1])}"
    assert list(lists_of_counters(ast.parse(text))) == [1]
