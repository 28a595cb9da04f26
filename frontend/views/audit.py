"""The audit trail of the teams that the user administers."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.common.errors import NotAllowed
from controlplane.teams.audit import list_entries
from controlplane.teams.selectors import teams_administered
from frontend.forms import AuditFilter
from frontend.paging import keyset_page
from frontend.views.common import PageRequest, page


@page
def index(request: PageRequest) -> HttpResponse:
    """Who did what, the latest first; of one team at a time."""
    teams = list(teams_administered(request.user))
    if not teams:
        raise NotAllowed("The audit trail is for the admins of a team.")
    filters = AuditFilter(request.GET, teams=[team.name for team in teams])
    team = next((t for t in teams if t.name == filters.chosen("team")), teams[0])
    entries = list_entries(
        request.user,
        team,
        username=filters.chosen("user"),
        target=filters.chosen("target"),
        target_id=filters.chosen("target_id"),
    )
    rows = keyset_page(entries, ["-id"], request.GET.get("cursor"))
    return render(request, "audit/list.html", {"filters": filters, "page": rows, "team": team})
