"""The quarantine across datasources, by cause."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.segments.selectors.causes import CauseFilter, list_causes
from controlplane.tasks.causes import described
from frontend.forms import CausesFilterForm
from frontend.paging import keyset_page
from frontend.reach import reach_of
from frontend.views.common import PageRequest, page, rest_address

PER_PAGE = 50
ORDER = ["-last_at", "datasource_id", "cause"]


@page
def index(request: PageRequest) -> HttpResponse:
    """Why records are in quarantine, the cause seen last first."""
    reach = reach_of(request)
    filters = CausesFilterForm(request.GET, teams=reach.teams)
    wanted = replace(filters.wanted, team=filters.wanted.team or reach.team)
    rows = keyset_page(list_causes(request.user, wanted), ORDER, request.GET.get("cursor"), PER_PAGE)
    context = {
        "filters": filters,
        "page": rows,
        "causes": described(request.user, rows.rows),
        "asked": any(request.GET.get(name) for name in filters.fields),
        "rest": _rest(wanted),
    }
    return render(request, "quarantine/causes.html", context)


def _rest(wanted: CauseFilter) -> str:
    texts = {name: getattr(wanted, name) for name in ("team", "datasource", "reason", "cause")}
    since = wanted.since.isoformat() if wanted.since else ""
    return rest_address("api:quarantine-causes", **texts, since=since, waiting="true" if wanted.waiting else "")
