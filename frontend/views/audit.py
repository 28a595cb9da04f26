"""The audit trail of the teams that the user administers, and of the site."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import NotAllowed
from controlplane.common.streaming import download
from controlplane.teams import audit_export
from controlplane.teams.audit import ACTIONS, SITE_ONLY, AuditFilter, list_entries, list_site_entries
from controlplane.teams.models import AuditEntry, Team
from controlplane.teams.permissions import is_site_admin
from controlplane.teams.selectors import teams_administered
from frontend.filters import Filter, Window, choice_input, set_choices, text_input, time_input
from frontend.paging import keyset_page
from frontend.tables import Column, Shape
from frontend.views.common import PageRequest, page, rest_address

_ACTIONS = sorted({action for actions in ACTIONS.values() for action in actions})


class AuditForm(Filter, Window):
    """Its values are those of an ``AuditFilter``, and the team."""

    team = forms.ChoiceField(required=False, widget=choice_input())
    user = forms.CharField(required=False, max_length=150, widget=text_input("Name"))
    target = forms.ChoiceField(
        required=False,
        label="What",
        choices=[("", "Any"), *((name, name.replace("_", " ")) for name in ACTIONS)],
        widget=choice_input(),
    )
    target_id = forms.CharField(required=False, max_length=300, label="Id", widget=text_input("Id"))
    action = forms.ChoiceField(
        required=False,
        choices=[("", "Any"), *((name, name.replace("_", " ")) for name in _ACTIONS)],
        widget=choice_input(),
    )
    text = forms.CharField(required=False, max_length=200, label="Contains text", widget=text_input("Anywhere"))
    since = forms.DateTimeField(required=False, label="From (UTC)", widget=time_input())
    until = forms.DateTimeField(required=False, label="to (UTC)", widget=time_input())

    def __init__(self, *args: Any, teams: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_choices(self, "team", teams)

    @property
    def selection(self) -> AuditFilter:
        """What is chosen; a choice that can't be read filters nothing."""
        self.is_valid()
        cleaned = self.cleaned_data
        plain = {name: cleaned.get(name) or "" for name in ("target", "target_id", "action", "team", "text")}
        return AuditFilter(
            username=cleaned.get("user") or "", since=cleaned.get("since"), until=cleaned.get("until"), **plain
        )


EVERYTHING = {"": "Everything", SITE_ONLY: "Only the site"}
NOT_SORTABLE = "Too many entries to sort by this column. Filter instead"
TABLE = Shape(
    "audit",
    (
        Column("when", "When", sorts="id", descending_first=True, fixed=True),
        Column("team", "Team", unsortable_reason=NOT_SORTABLE),
        Column("who", "Who", unsortable_reason=NOT_SORTABLE),
        Column("what", "What", unsortable_reason=NOT_SORTABLE),
        Column("to", "To", unsortable_reason=NOT_SORTABLE),
        Column("detail", "Detail"),
    ),
    default="-when",
    tie_breakers=("-id",),
)


@page
def index(request: PageRequest) -> HttpResponse:
    """Who did what; of one team at a time, for a site's administrator of all together."""
    filters, team = _read_filters(request)
    table = (TABLE.without_columns("team") if team else TABLE).table_for(request.GET)
    rows = keyset_page(_entries(request, filters, team), table.order, request.GET.get("cursor"))
    query = request.GET.copy()
    for name in ("cursor", "sort"):
        query.pop(name, None)
    site_query = {"team": filters.selection.team} if team is None else {}
    context = {
        "filters": filters,
        "filtered": bool(query),
        "clear": reverse("frontend:audit"),
        "table": table,
        "page": rows,
        "team": team,
        "title": f"Audit trail of {team.name}" if team else "Audit trail of the site",
        "asked": query.urlencode(),
        "forms": (("csv", "CSV"), ("ndjson", "JSON lines")),
        "rest": rest_address("api:audit", team.name) if team else rest_address("api:site-audit", **site_query),
    }
    return render(request, "audit/list.html", context)


@page
def export(request: PageRequest) -> HttpResponseBase:
    """All that the list's filters let through, as a file."""
    filters, team = _read_filters(request)
    form = request.GET.get("as", "csv")
    form = form if form in audit_export.FORMS else "csv"
    lines = audit_export.chunks(_entries(request, filters, team), form)
    return download(lines, f"audit-{team.name if team else 'site'}.{form}", audit_export.CONTENT_TYPES[form])


def _read_filters(request: PageRequest) -> tuple[AuditForm, Team | None]:
    """The filters, and the team; None for the site's trail."""
    teams = list(teams_administered(request.user))
    site_choices = EVERYTHING if is_site_admin(request.user) else {}
    if not teams and not site_choices:
        raise NotAllowed("Only admins of a team may read its audit trail.")
    choices = [*site_choices.items(), *((team.name, team.name) for team in teams)]
    filters = AuditForm(request.GET, teams=choices)
    chosen = next((t for t in teams if t.name == filters.chosen("team")), None)
    return filters, chosen if chosen is not None or site_choices else teams[0]


def _entries(request: PageRequest, filters: AuditForm, team: Team | None) -> QuerySet[AuditEntry]:
    if team is None:
        return list_site_entries(request.user, filters.selection)
    return list_entries(request.user, team, filters.selection)
