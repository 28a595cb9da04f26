"""What changed between two versions of a spec, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from controlplane.common.specjson import spec_text

MOST_PAIRS = 50_000


@dataclass(frozen=True)
class DiffLine:
    """One line of the difference between two specs."""

    kind: str  # added, removed, same, or place (where in the document the next lines are)
    text: str


def spec_diff(before: Mapping[str, Any], after: Mapping[str, Any], context: int = 3) -> list[DiffLine]:
    """Unified lines of both as JSON; empty when they say the same.

    Where comparing them line by line would take long, all lines of the one are removed and all of the other added.
    """
    old, new = _lines(before), _lines(after)
    if old != new and _pairs(old, new) > MOST_PAIRS:
        return [*(DiffLine("removed", f"-{text}") for text in old), *(DiffLine("added", f"+{text}") for text in new)]
    lines = unified_diff(old, new, lineterm="", n=context)
    return [_line(text) for text in list(lines)[2:]]


def _pairs(old: list[str], new: list[str]) -> int:
    """How many pairs of equal lines ``difflib`` looks at, again and again. It leaves out lines that stand often."""
    counts = Counter(new)
    often = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    return sum(counts[text] for text in old if counts[text] <= often)


def _lines(spec: Mapping[str, Any]) -> list[str]:
    return spec_text(spec).splitlines()


def _line(text: str) -> DiffLine:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(text[:1], "same")
    return DiffLine(kind, text)
