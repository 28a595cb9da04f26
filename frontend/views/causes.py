"""The quarantine across datasources, by cause."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.quarantine.selectors.causes import CauseFilter, list_causes
from controlplane.tasks.causes import describe_causes
from frontend.paging import keyset_page
from frontend.quarantine_forms import CausesFilterForm
from frontend.tables import Column, Shape
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, page, rest_address

PER_PAGE = 50
TABLE = Shape(
    "causes",
    (
        Column(
            "cause",
            "Cause",
            fixed=True,
            unsortable_reason="A cause's text is that of its newest record, so it cannot be sorted",
        ),
        Column("datasource", "Datasource", sorts="datasource_name"),
        Column("waiting", "Waiting", sorts="kept", number=True, descending_first=True),
        Column("records", "In quarantine", sorts="records", number=True, descending_first=True),
        Column("trend", "Last 24 hours"),
        Column("first_seen", "First seen", sorts="first_at", descending_first=True),
        Column("last_seen", "Last seen", sorts="last_at", descending_first=True),
        Column("spec", "Spec version"),
    ),
    default="-last_seen",
    tie_breakers=("datasource_id", "cause", "reason"),
)


@page
def index(request: PageRequest) -> HttpResponse:
    """Why records are in quarantine."""
    reach, table = reach_of(request), TABLE.table_for(request.GET)
    filters = CausesFilterForm(request.GET, teams=reach.teams)
    cause_filter = replace(filters.selection, team=filters.selection.team or reach.team)
    rows = keyset_page(list_causes(request.user, cause_filter), table.order, request.GET.get("cursor"), PER_PAGE)
    context = {
        "filters": filters,
        "table": table,
        "page": rows,
        "causes": describe_causes(request.user, rows.rows),
        "filtered": any(request.GET.get(name) for name in filters.fields),
        "clear": reverse("frontend:quarantine"),
        "rest": _rest(cause_filter),
    }
    return render(request, "quarantine/causes.html", context)


def _rest(cause_filter: CauseFilter) -> str:
    texts = {name: getattr(cause_filter, name) for name in ("team", "datasource", "reason", "cause")}
    since = cause_filter.since.isoformat() if cause_filter.since else ""
    return rest_address("api:quarantine-causes", **texts, since=since, waiting="true" if cause_filter.waiting else "")
