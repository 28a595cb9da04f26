"""The versions of a supervisor's spec: one as JSON, what differs between any two, and the way back to one."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.supervisors import services
from controlplane.supervisors.history import change_between, history, tombstone_of
from controlplane.supervisors.models import SpecVersion
from controlplane.supervisors.selectors import get_supervisor
from controlplane.teams.permissions import Action, require
from frontend.views.common import PageRequest, act, page
from frontend.views.supervisors import frame


@page
def spec(request: PageRequest, supervisor_id: str) -> HttpResponse:
    """One version as JSON, and what it changed: of the one before, or of the one that ``against`` names."""
    supervisor = get_supervisor(request.user, supervisor_id)
    versions: list[Any] = list(history(supervisor))
    shown = _find_version(request.GET.get("version"), versions, versions[0])
    before = next((v for v in versions if v.version == shown.version - 1), None)
    against = _find_version(request.GET.get("against") or None, versions, before)
    context = {
        **frame(request, supervisor, "spec"),
        "versions": [(v, tombstone_of(v)) for v in versions],
        "shown": shown,
        "against": against,
        "change": change_between(against, shown) if against and against != shown else None,
    }
    return render(request, "supervisors/spec.html", context)


@page
def ask(request: PageRequest, supervisor_id: str, number: int) -> HttpResponse:
    """Before a roll-back: what it would change of the spec that holds."""
    supervisor = get_supervisor(request.user, supervisor_id)
    require(request.user, Action.ADMINISTER, supervisor.datasource.team)
    earlier = supervisor.versions.filter(version=number).first()
    if earlier is None or number == supervisor.version:
        raise Http404("There is no such version to roll back to.")
    context = {
        **frame(request, supervisor, "spec"),
        "earlier": earlier,
        "change": change_between(supervisor.current, earlier),
    }
    return render(request, "supervisors/roll_back.html", context)


@require_POST
@page
def roll_back(request: PageRequest, supervisor_id: str, number: int) -> HttpResponse:
    """A new version with the content of that one."""
    supervisor = get_supervisor(request.user, supervisor_id)
    done = f"{supervisor.id} has a new version with the content of version {number}. New tasks use it."
    back = reverse("frontend:supervisor-spec", args=[supervisor.id])
    return act(
        request, lambda: services.roll_back(user=request.user, supervisor=supervisor, version=number), done, back
    )


def _find_version(text: str | None, versions: list[SpecVersion], default: Any) -> Any:
    if text is None:
        return default
    for version in versions:
        if str(version.version) == text:
            return version
    raise Http404("There is no such version.")
