"""Which columns a dry run of a rewind would change: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ingestion.specs.messages.protocol import ColumnSummary

MAX_COLUMNS = 200  # that are named


def changed_columns(before: Iterable[ColumnSummary], after: Iterable[ColumnSummary]) -> dict[str, Any]:
    """``{"columns": [...], "more": how many are not named}``, by name. Several summaries of a column are added up."""
    old, new = _by_name(before), _by_name(after)
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    columns = [
        {"name": name, **_told("before", old.get(name)), **_told("after", new.get(name))}
        for name in names[:MAX_COLUMNS]
    ]
    return {"columns": columns, "more": len(names) - len(columns)}


def shown_changes(changes: Mapping[str, Any], hidden: Iterable[str]) -> dict[str, Any]:
    """Without the sums of columns whose values are ``hidden``."""
    concealed = {*hidden}
    columns = [
        {**c, "sum_before": None, "sum_after": None} if c["name"] in concealed else c
        for c in changes.get("columns", [])
    ]
    return {"columns": columns, "more": changes.get("more", 0)}


def _by_name(summaries: Iterable[ColumnSummary]) -> dict[str, ColumnSummary]:
    found: dict[str, ColumnSummary] = {}
    for one in summaries:
        found[one.name] = found[one.name].plus(one) if one.name in found else one
    return found


def _told(when: str, one: ColumnSummary | None) -> dict[str, Any]:
    """Of a column that is not there, no type."""
    kind, values, total = (None, 0, None) if one is None else (one.type, one.values, one.total)
    return {f"type_{when}": kind, f"values_{when}": values, f"sum_{when}": total}
