"""What belongs to the site and not to one of its things: the palette, the chosen team."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from controlplane.common.errors import InvalidInput
from frontend.palette import hits_of
from frontend.team_scope import TEAM_KEY, reach_of
from frontend.views.common import PageRequest, page


@page
def palette(request: PageRequest) -> HttpResponse:
    """What there is for a text, as JSON: what the user may see, and what the user may do."""
    hits = hits_of(request.user, reach_of(request), request.GET.get("q", ""))
    return JsonResponse({"hits": [asdict(hit) for hit in hits]})


@require_POST
@page
def choose_team(request: PageRequest) -> HttpResponse:
    """Lists show one team's things, or with an empty name all that the user may see; kept in the session."""
    name = request.POST.get("team", "")
    if name and name not in reach_of(request).teams:
        raise InvalidInput(f"You are in no team {name[:100]!r}.")
    request.session[TEAM_KEY] = name
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return redirect(back if safe and back.startswith("/") else "frontend:home")
