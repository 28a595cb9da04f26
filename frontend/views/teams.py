"""Teams: the user's own with their invitations, a team's members, making and deleting one."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common.errors import Conflict, InvalidInput, NotFound
from controlplane.teams import selectors, services
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, is_site_admin, require, require_site_admin
from controlplane.teams.teams import create_team, delete_team, describe_team, rename_team
from frontend.paging import numbered_page
from frontend.tables import Column, Shape
from frontend.team_forms import AboutForm, TeamForm
from frontend.team_scope import reach_of
from frontend.views.common import PageRequest, act, error_text, page
from frontend.views.team_tabs import holdings_of, team_actions, team_page

TABLE = Shape(
    "teams",
    (
        Column("name", "Team", sorts="name", fixed=True),
        Column("role", "Your role", sorts="role"),
        Column("members", "Members", sorts="member_count", number=True, descending_first=True),
        Column("made", "Created", sorts="created_at", descending_first=True),
        Column("leave", "Leave", fixed=True, has_hidden_head=True),
    ),
    default="name",
    tie_breakers=("name",),
)


@page
def index(request: PageRequest) -> HttpResponse:
    """Which teams the user is in (all for the site's administrators), and which have invited them."""
    table = TABLE.table_for(request.GET)
    queryset = selectors.list_teams(request.user).order_by(*table.ordering)
    context = {
        "page": numbered_page(queryset, request.GET.get("page")),
        "table": table,
        "mine": {membership.team.name for membership in reach_of(request).memberships},
        "invitations": selectors.my_invitations(request.user),
        "may_make": is_site_admin(request.user),
        "rest": reverse("api:teams"),
    }
    return render(request, "teams/list.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """Make a team."""
    require_site_admin(request.user)
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            team = create_team(user=request.user, name=form.cleaned_data["name"])
        except (InvalidInput, Conflict) as error:
            form.add_error("name", error_text(error))
        else:
            messages.success(request, f"Team {team.name} was created, and you are its admin. Now invite its members.")
            return redirect("frontend:team", team.name)
    return render(request, "teams/new.html", {"form": form}, status=400 if form.errors else 200)


@page
def about(request: PageRequest, name: str) -> HttpResponse:
    """What the team is about; the site's administrators may give it another name."""
    team = selectors.get_team(request.user, name)
    require(request.user, Action.ADMINISTER, team)
    initial = {"name": team.name, "description": team.description}
    form = AboutForm(request.POST or None, initial=initial, renames=is_site_admin(request.user))
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            with transaction.atomic():
                team = describe_team(user=request.user, team=team, description=cleaned["description"])
                team = rename_team(user=request.user, team=team, name=cleaned["name"]) if "name" in cleaned else team
        except (InvalidInput, Conflict) as error:
            form.add_error(None, error_text(error))
        else:
            messages.success(request, "The changes are saved.")
            return redirect("frontend:team-about", team.name)
    status = 400 if form.errors else 200
    return team_page(
        request, team, "about", "teams/about.html", {"form": form, "holdings": holdings_of(team)}, status=status
    )


@page
def confirm(request: PageRequest, name: str, action: str) -> HttpResponse:
    """Ask, without scripts."""
    team = selectors.get_team(request.user, name)
    page_action = team_actions(request.user, team).get(action)
    if page_action is None:
        raise NotFound("There is nothing to confirm.")
    back = reverse("frontend:team", args=[team.name])
    return render(request, "confirm.html", {"action": page_action, "back": back})


@require_POST
@page
def delete(request: PageRequest, name: str) -> HttpResponse:
    """Delete a team that owns nothing."""
    team = selectors.get_team(request.user, name)
    try:
        delete_team(user=request.user, team=team)
    except Conflict as error:
        messages.error(request, error_text(error))
        return redirect("frontend:team", name)
    messages.success(request, f"Team {name} is deleted.")
    return redirect("frontend:teams")


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
