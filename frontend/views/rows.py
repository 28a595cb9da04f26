"""A datasource's newest rows as a table: the page at once, the rows as soon as they have been read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.feed.manifest import open_snippets, trino_properties
from controlplane.segments.columns import case_conflicts
from controlplane.segments.newest_rows import NewestRows, TooManyRows, newest_rows
from controlplane.tasks.datasources import get_datasource
from frontend.chart_windows import WINDOWS
from frontend.sketches import sketch_text
from frontend.templatetags.headgate import iso
from frontend.views.common import PageRequest, page, read_time
from frontend.views.datasources import frame


@dataclass(frozen=True)
class Cell:
    """One value as it is shown."""

    kind: str  # null, masked, cut, number or text
    text: str = ""
    size_bytes: int = 0  # of a value that is cut


@page
def rows(request: PageRequest, name: str) -> HttpResponse:
    """The page; of a window with ``from`` and ``to``."""
    return _page(request, name, read=False)


@page
def table(request: PageRequest, name: str) -> HttpResponse:
    """The rows: the page's part that it asks for, or for who runs no scripts the whole page."""
    return _page(request, name, read=True)


def _page(request: PageRequest, name: str, read: bool) -> HttpResponse:
    datasource = get_datasource(request.user, name)
    start, end = _read_window(request)
    site = request.build_absolute_uri("/").rstrip("/")
    window = {n: t.isoformat().replace("+00:00", "Z") for n, t in (("from", start), ("to", end)) if t is not None}
    query = f"?{urlencode(window)}" if window else ""
    context: dict[str, Any] = {
        **frame(request, datasource, "rows", **window),
        "start": start,
        "end": end,
        "table_url": reverse("frontend:datasource-rows-table", args=[name]) + query,
        "read": read,
        "alike": case_conflicts(datasource),
        "lines": open_snippets(datasource.team.name, name, site),
        "trino": trino_properties(site),
    }
    if read:
        context |= _read(request, datasource, start, end)
    return render(request, "datasources/_rows.html" if read and request.htmx else "datasources/rows.html", context)


def _read(request: PageRequest, datasource: Any, start: datetime | None, end: datetime | None) -> dict[str, Any]:
    try:
        newest = newest_rows(user=request.user, datasource=datasource, start=start, end=end)
    except (NotFound, NotAllowed):
        raise
    except TooManyRows as error:
        url = reverse("frontend:datasource-rows", args=[datasource.name])
        return {"problem": error, "shorter": shorter_windows(datasource, start, end, url)}
    except HeadgateError as error:
        return {"problem": error}
    return table_of(newest)


def shorter_windows(
    datasource: Any, start: datetime | None, end: datetime | None, url: str, **query: str
) -> list[tuple[str, str]]:
    """What to ask a page for instead, with its address: less time before the same end, the longest first."""
    if end is None and datasource.max_time is None:
        return []
    until = end or datasource.max_time + timedelta(milliseconds=1)  # the newest row is to be in it
    fitting = [window for window in reversed(WINDOWS) if start is None or window.length < until - start]
    windows = [(w.label, {**query, "from": iso(until - w.length), "to": iso(until)}) for w in fitting]
    return [(label, f"{url}?{urlencode(window)}") for label, window in windows]


def table_of(newest: NewestRows) -> dict[str, Any]:
    """What ``datasources/_rows_table.html`` shows of rows."""
    numbers = {c.name for c in newest.columns if c.type in ("long", "double")}
    return {"found": newest, "shown": [[cell_of(v) for v in row] for row in newest.rows], "numbers": numbers}


def cell_of(value: Any) -> Cell:
    """How a cell of ``NewestRows`` is shown."""
    if value is None:
        return Cell("null")
    if isinstance(value, dict):
        if value.get("masked"):
            return Cell("masked", value.get("role", ""))
        return (
            Cell("cut", value["start"], value["size_bytes"]) if "start" in value else Cell("text", sketch_text(value))
        )
    if isinstance(value, bool):
        return Cell("text", "true" if value else "false")
    if isinstance(value, int | float):
        return Cell("number", f"{value}")
    if isinstance(value, list):
        return Cell("text", "[" + ", ".join("null" if v is None else str(v) for v in value) + "]")
    return Cell("text", value)


def _read_window(request: PageRequest) -> tuple[datetime | None, datetime | None]:
    try:
        start, end = read_time(request, "from"), read_time(request, "to")
        if start is not None and end is not None and start >= end:
            raise ValueError("from must be before to")
    except ValueError as error:
        messages.warning(request, f"The time range is ignored, and the newest rows of all time are shown: {error}.")
        return None, None
    return start, end
