"""What a column holds: the page at once, the profile as soon as it has been read."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import HeadgateError, InvalidInput, NotAllowed, NotFound
from controlplane.datasources.models import Datasource
from controlplane.query.profiles import DEFAULT_ROWS, TOP, ColumnProfile, find_column, newest_range, read_profile
from controlplane.tasks.datasources import get_datasource
from frontend.templatetags.headgate import iso
from frontend.views.common import PageRequest, page, read_time
from frontend.views.datasources import frame
from frontend.views.rows import cell_of, shorter_windows


@page
def column_profile(request: PageRequest, name: str) -> HttpResponse:
    """The page of a column; with ``read`` the profile, as a part of the page or for who runs no scripts in it."""
    datasource, column = get_datasource(request.user, name), request.GET.get("column", "")
    find_column(request.user, datasource, column)
    chosen = _chosen_range(request)
    start, end = chosen or newest_range(datasource)
    query = {"column": column, **{n: iso(t) for n, t in zip(("from", "to"), chosen or (), strict=False) if t}}
    address = reverse("frontend:datasource-profile", args=[name])
    context: dict[str, Any] = {
        **frame(request, datasource, "profile", **query),
        "tab": "columns",
        "column": column,
        "start": start,
        "end": end,
        "is_default": chosen is None,
        "default_rows": DEFAULT_ROWS,
        "newest": f"{address}?{urlencode({'column': column})}",
        "part_url": f"{address}?{urlencode({**query, 'read': '1'})}",
        "read": request.GET.get("read") == "1",
    }
    if context["read"]:
        context |= _read(request, datasource, column, start, end)
    is_part = context["read"] and request.htmx
    return render(request, "datasources/_profile.html" if is_part else "datasources/profile.html", context)


def _chosen_range(request: PageRequest) -> tuple[datetime | None, datetime | None] | None:
    """None if the address has none. Raises ``InvalidInput``."""
    try:
        start, end = read_time(request, "from"), read_time(request, "to")
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
    return None if start is None and end is None else (start, end)


def _read(
    request: PageRequest, datasource: Datasource, column: str, start: datetime | None, end: datetime | None
) -> dict[str, Any]:
    try:
        profile = read_profile(user=request.user, datasource=datasource, column=column, start=start, end=end)
    except (NotFound, NotAllowed):
        raise
    except InvalidInput as error:
        url = reverse("frontend:datasource-profile", args=[datasource.name])
        return {"problem": error, "shorter": shorter_windows(datasource, start, end, url, column=column)}
    except HeadgateError as error:
        return {"problem": error}
    return {"profile": profile, "shown": [_shown(one) for one in profile.profiles], "top_count": TOP}


def _shown(one: ColumnProfile) -> dict[str, Any]:
    """With shares in percent: nulls of all rows, a value of all that are not null."""
    return {
        "of": one,
        "null_percent": 100 * one.nulls / one.rows if one.rows else None,
        "is_exact": one.distinct is not None and one.distinct < TOP,
        "extremes": [("Min", cell_of(one.min)), ("Max", cell_of(one.max))] if one.values else [],
        "top": [(cell_of(top.value), top.count, 100 * top.count / (one.values or 1)) for top in one.top],
    }
