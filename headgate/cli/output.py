"""Answers on the terminal: as a table, as JSON or as YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import yaml

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Form(StrEnum):
    table = "table"
    json = "json"
    yaml = "yaml"


def written(value: Any, form: Form, columns: Sequence[str] = ()) -> str:
    """``columns``: of a table, each a field's name; ``health.code`` is a field within one."""
    if form is Form.json:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if form is Form.yaml or not isinstance(value, list):
        return plain(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120).rstrip())
    return table([heading(c) for c in columns], [[cell(row, c) for c in columns] for row in value])


def heading(column: str) -> str:
    """The field's name; ``health.label`` is the health itself."""
    parent, _, name = column.rpartition(".")
    return parent if name == "label" else name


def cell(row: Any, column: str) -> str:
    """The field's value in one line; empty for null."""
    value = row
    for part in column.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return " ".join(str(value).split())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Aligned columns; the last one may be as long as it is."""
    lines = [[name.upper().replace("_", " ") for name in head], *rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    return plain("\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines))


def plain(text: str) -> str:
    """Without control characters: records and logs hold what others wrote, and a terminal obeys some of it."""
    return _CONTROL.sub("�", text)
