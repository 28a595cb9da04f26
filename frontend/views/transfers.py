"""The questions before a datasource or a connection is another team's, and the answers."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.common.errors import Conflict
from controlplane.connections.selectors import get_connection
from controlplane.supervisors.connections import uses_of
from controlplane.tasks.datasources import get_datasource
from controlplane.teams.models import Team
from controlplane.teams.permissions import Action, require
from controlplane.teams.selectors import teams_administered
from controlplane.transfers.services import preview_transfer, transfer_connection, transfer_datasource
from frontend.views.common import PageRequest, page, rest_address

DATASOURCE, CONNECTION = "datasources/transfer.html", "connections/transfer.html"


class TransferForm(forms.Form):
    """To which team."""

    team = forms.ChoiceField(label="To team", widget=forms.Select(attrs={"class": "form-select"}))

    def __init__(self, *args: Any, teams: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["team"]).choices = [(name, name) for name in teams]


class DatasourceTransferForm(TransferForm):
    """And whether its connections come along."""

    connections = forms.BooleanField(
        label="Also move connections that its specs name and the team lacks",
        required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )


@page
def datasource(request: PageRequest, name: str) -> HttpResponse:
    """Of a datasource: what would change, and the transfer."""
    subject = get_datasource(request.user, name)
    effects = preview_transfer(request.user, subject)
    form = DatasourceTransferForm(request.POST or None, teams=_others(request, subject.team))
    context = {
        "datasource": subject,
        "seen": effects,
        "form": form,
        "crumbs": [
            ("Datasources", reverse("frontend:datasources")),
            (name, reverse("frontend:datasource", args=[name])),
        ],
        "rest": rest_address("api:datasource", name),
    }
    if request.method != "POST":
        return render(request, DATASOURCE, context)
    if not form.is_valid():
        return render(request, DATASOURCE, context, status=400)
    team = form.cleaned_data["team"]
    try:
        moved = transfer_datasource(
            user=request.user, datasource=subject, team_name=team, along=form.cleaned_data["connections"]
        )
    except Conflict as error:
        return render(request, DATASOURCE, {**context, "problem": error}, status=error.status)
    along = f" and {', '.join(moved)}" if moved else ""
    messages.success(request, f"Team {team} now owns the datasource {name}{along}.")
    return redirect("frontend:datasource", name)


@page
def connection(request: PageRequest, team: str, name: str) -> HttpResponse:
    """Of a connection."""
    subject = get_connection(request.user, team, name)
    require(request.user, Action.ADMINISTER, subject.team)
    form = TransferForm(request.POST or None, teams=_others(request, subject.team))
    back = reverse("frontend:connection", args=[team, name])
    crumbs = [("Connections", reverse("frontend:connections")), (name, back)]
    rest = rest_address("api:connection", team, name)
    context = {
        "connection": subject,
        "uses": uses_of(subject),
        "form": form,
        "crumbs": crumbs,
        "back": back,
        "rest": rest,
    }
    if request.method != "POST":
        return render(request, CONNECTION, context)
    if not form.is_valid():
        return render(request, CONNECTION, context, status=400)
    try:
        moved = transfer_connection(user=request.user, connection=subject, team_name=form.cleaned_data["team"])
    except Conflict as error:
        return render(request, CONNECTION, {**context, "problem": error}, status=error.status)
    messages.success(request, f"Team {moved.team.name} now owns the connection {name}.")
    return redirect("frontend:connection", moved.team.name, moved.name)


def _others(request: PageRequest, team: Team) -> list[str]:
    """The teams that the user may give something to."""
    return [other.name for other in teams_administered(request.user) if other.pk != team.pk]
