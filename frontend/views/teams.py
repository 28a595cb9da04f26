"""The user's own teams: invitations to answer, and leaving."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from controlplane.teams import selectors, services
from controlplane.teams.models import User
from frontend.views.common import PageRequest, act, page


@page
def index(request: PageRequest) -> HttpResponse:
    """Which teams the user is in, and which have invited them."""
    return render(request, "teams/list.html", {"invitations": selectors.my_invitations(request.user)})


@require_POST
@page
def answer(request: PageRequest, name: str, action: str) -> HttpResponse:
    """Accept or decline an invitation, or leave the team."""
    if action not in _ANSWERS:
        raise Http404
    do, done = _ANSWERS[action]
    return act(request, lambda: do(request.user, name), done.format(name), "frontend:teams")


def _accept(user: User, name: str) -> None:
    services.accept_invitation(user=user, team_name=name)


def _decline(user: User, name: str) -> None:
    services.decline_invitation(user=user, team_name=name)


def _leave(user: User, name: str) -> None:
    services.leave(user=user, team=selectors.get_team(user, name))


_ANSWERS: dict[str, tuple[Callable[[User, str], None], str]] = {
    "accept": (_accept, "You are in team {} now."),
    "decline": (_decline, "The invitation of team {} is declined."),
    "leave": (_leave, "You have left team {}."),
}
