"""An audit trail as a file: CSV, or newline-delimited JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet

from controlplane.teams.models import AuditEntry

AT_ONCE = 500
COLUMNS = ("id", "at", "team", "user", "address", "token", "action", "target", "target_id", "detail")
# A spreadsheet takes a cell that begins with one of these for a formula. Names are somebody else's words.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def chunks(entries: QuerySet[AuditEntry], form: str) -> Iterator[bytes]:
    """All that match, newest first, in some chunks: each is a query of its own. ``form``: of ``FORMS``."""
    encode = FORMS[form]
    if form == "csv":
        yield _row(list(COLUMNS))
    before: int | None = None
    while True:
        page = entries if before is None else entries.filter(pk__lt=before)
        rows = list(page.order_by("-id")[:AT_ONCE])
        if not rows:
            return
        yield b"".join(encode(_values(entry)) for entry in rows)
        before = rows[-1].pk


def _values(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "at": entry.at.isoformat().replace("+00:00", "Z"),
        "team": entry.team.name if entry.team else None,
        "user": entry.username,
        "address": entry.address,
        "token": entry.token,
        "action": entry.action,
        "target": entry.target,
        "target_id": entry.target_id,
        "detail": entry.detail,
    }


def _as_csv(values: dict[str, Any]) -> bytes:
    cells = [json.dumps(v, ensure_ascii=False) if isinstance(v, dict) else v for v in values.values()]
    return _row(["" if cell is None else escape_formula(str(cell)) for cell in cells])


def escape_formula(cell: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would calculate."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _row(cells: list[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode("utf-8", "backslashreplace")


def _as_json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


FORMS: dict[str, Callable[[dict[str, Any]], bytes]] = {"csv": _as_csv, "ndjson": _as_json}
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}
