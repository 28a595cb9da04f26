"""What changed between two versions of a spec, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from controlplane.common.specjson import spec_text


@dataclass(frozen=True)
class DiffLine:
    """``kind``: added, removed, same, or place (where in the document the next lines are)."""

    kind: str
    text: str


def spec_diff(before: Mapping[str, Any], after: Mapping[str, Any], context: int = 3) -> list[DiffLine]:
    """Unified lines of both as JSON; empty when they say the same."""
    lines = unified_diff(_lines(before), _lines(after), lineterm="", n=context)
    return [_line(text) for text in list(lines)[2:]]


def _lines(spec: Mapping[str, Any]) -> list[str]:
    return spec_text(spec).splitlines()


def _line(text: str) -> DiffLine:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(text[:1], "same")
    return DiffLine(kind, text)
