"""The tabs of a team's page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, is_site_admin, may
from controlplane.teams.teams import OwnedObjects, owned_by
from frontend.actions import PageAction
from frontend.views.common import PageRequest, rest_address


@dataclass(frozen=True)
class Tab:
    """One part of a team's page."""

    name: str
    label: str
    view: str  # its address has the team's name alone
    admins: bool = False  # shown to the team's admins alone


# To add a tab: one line here, in the order in which the page shows them.
TABS = (
    Tab("members", "Members", "frontend:team"),
    Tab("tokens", "Tokens", "frontend:team-tokens", admins=True),
    Tab("service-accounts", "Service accounts", "frontend:team-accounts", admins=True),
    Tab("limits", "Limits", "frontend:team-limits", admins=True),
    Tab("about", "About", "frontend:team-about", admins=True),
)


def team_page(
    request: PageRequest, team: Team, tab: str, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """A tab of a team's page; its template extends ``teams/base.html``."""
    administers = may(request.user, Action.ADMINISTER, team)
    shown = {
        "team": team,
        "tab": tab,
        "subtitle": team.description or "Members, limits and access of this team.",
        "tabs": [(entry, reverse(entry.view, args=[team.name])) for entry in TABS if administers or not entry.admins],
        "may_administer": administers,
        "audit": f"{reverse('frontend:audit')}?{urlencode({'team': team.name})}" if administers else "",
        "actions": list(team_actions(request.user, team).values()),
        "rest": rest_address("api:team", team.name),
        "crumbs": [("Teams", reverse("frontend:teams"))],
    }
    return render(request, template, {**shown, **context}, status=status)


def holdings_of(team: Team) -> list[tuple[OwnedObjects, list[tuple[str, str]]]]:
    """What the team owns, and names and addresses of it."""
    return [
        (holding, [(name, _page_of(team, holding.kind, name)) for name in holding.names]) for holding in owned_by(team)
    ]


def _page_of(team: Team, kind: str, name: str) -> str:
    return reverse(f"frontend:{kind}", args=[team.name, name] if kind == "connection" else [name])


def team_actions(user: User, team: Team) -> dict[str, PageAction]:
    """By name, only what the user may do: leave as a member, delete a team that owns nothing as the site's admin."""
    return _leave_action(user, team) | _delete_action(user, team)


def _leave_action(user: User, team: Team) -> dict[str, PageAction]:
    if not team.memberships.filter(user=user).exists():
        return {}
    text = "You can no longer see the team, and your tokens no longer work there. What you submitted keeps running."
    url = reverse("frontend:team-answer", args=[team.name, "leave"])
    ask = reverse("frontend:team-leave-confirm", args=[team.name])
    return {"leave": PageAction("leave", "Leave team", f"Leave team {team.name}?", text, url, ask, "secondary")}


def _delete_action(user: User, team: Team) -> dict[str, PageAction]:
    if not is_site_admin(user) or owned_by(team):
        return {}
    text = "All members lose access, and open invitations end."
    url, ask = (reverse(view, args=[team.name]) for view in ("frontend:team-delete", "frontend:team-delete-confirm"))
    return {"delete": PageAction("delete", "Delete team", f"Delete team {team.name}?", text, url, ask, "danger")}
