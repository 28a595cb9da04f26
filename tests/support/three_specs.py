"""Records that each of three specs makes something else of: it has fields of its own in them, and its rows name it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from tests.support.publishes import DAY

DAYS = (DAY, DAY + timedelta(days=1))
SPECS = (1, 2, 3)


def fate_of(spec: int, n: int) -> int:
    """0: thrown away. 1: unparseable. 2, 3: a row on the first day, on the second. 4: one on each."""
    return (7 * n + 3 * spec) % 5


def days_of(spec: int, n: int) -> tuple[datetime, ...]:
    return {2: DAYS[:1], 3: DAYS[1:], 4: DAYS}.get(fate_of(spec, n), ())


def record(n: int) -> bytes:
    """Two rows, one for each day. Each spec has fields of its own, which say what becomes of them."""
    rows: list[dict[str, Any]] = []
    for day in DAYS:
        row: dict[str, Any] = {"n": n}
        for spec in SPECS:
            row[f"keep{spec}"] = "yes" if day in days_of(spec, n) else "no"
            if fate_of(spec, n) != 1:
                row[f"time{spec}"] = (day + timedelta(seconds=n)).isoformat()
        rows.append(row)
    return "\n".join(map(json.dumps, rows)).encode()


def data_schema(spec: int) -> dict[str, Any]:
    """What of its ``dataSchema`` makes a spec that one."""
    kept = {"type": "selector", "dimension": f"keep{spec}", "value": "yes"}
    number = {"type": "expression", "name": "spec", "expression": str(spec)}
    return {
        "timestampSpec": {"column": f"time{spec}", "format": "iso"},
        "dimensionsSpec": {"dimensions": [{"type": "long", "name": name} for name in ("n", "spec")]},
        "transformSpec": {"filter": kept, "transforms": [number]},
    }
