"""A team's limits: what it may use, and what it does."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from controlplane.metrics.usage import usage
from controlplane.quotas.services import LIMITS, MAX_VALUES, set_quota, team_over_quota
from controlplane.tasks.quota_use import shares
from controlplane.teams import selectors
from controlplane.teams.permissions import is_site_admin, require_site_admin
from frontend.views.common import PageRequest, page, rest_address
from frontend.views.team_tabs import team_page

MONTHS_SHOWN = 24
LABELS = {"indexers": "Indexers", "rows_a_day": "Rows a day (UTC)", "stored_bytes": "Stored bytes"}
LABELS |= {"sql_seconds": "Seconds of a query", "sql_mebibytes": "Memory of a query (MiB)"}
LABELS |= {"sql_rows": "Rows of a query's result", "sql_queries": "Queries at a time"}


class QuotaForm(forms.Form):
    """Each limit; empty for none."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they are
        for name in LIMITS:
            widget = forms.NumberInput(attrs={"class": "form-control", "placeholder": "no limit"})
            self.fields[name] = forms.IntegerField(
                label=LABELS[name], required=False, min_value=0, max_value=MAX_VALUES[name], widget=widget
            )


@page
def limits(request: PageRequest, name: str) -> HttpResponse:
    """The limits with their use; the site's administrators set them here."""
    team = selectors.get_team(request.user, name)
    if request.method == "POST":
        require_site_admin(request.user)
    used = shares(request.user, team)
    form = QuotaForm(request.POST or None, initial={share.name: share.limit for share in used})
    if request.method == "POST" and form.is_valid():
        set_quota(user=request.user, team=team, limits=form.cleaned_data)
        messages.success(request, f"The limits of team {team.name} are set.")
        return redirect("frontend:team-limits", team.name)
    context = {
        "shares": [(LABELS[share.name], share) for share in used],
        "stop": team_over_quota(team.pk),
        "usage": usage(request.user, team.name).order_by("-month")[:MONTHS_SHOWN],
        "usage_file": rest_address("api:usage-export", team=team.name),
        "form": form if is_site_admin(request.user) else None,
        "rest": rest_address("api:quotas", team.name),
    }
    return team_page(request, team, "limits", "teams/limits.html", context, status=400 if form.errors else 200)
