"""A team's members: who they are, inviting, changing roles, removing."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.common import mail
from controlplane.common.errors import Conflict, InvalidInput
from controlplane.teams import invitation_links, selectors, services
from controlplane.teams.models import Team
from controlplane.teams.permissions import Action, may, require
from controlplane.teams.roles import Role
from frontend.actions import PageAction
from frontend.paging import numbered_page
from frontend.tables import Column, Shape
from frontend.team_forms import InviteByLinkForm, InviteForm, OwnRoleForm, RoleForm
from frontend.views.common import PageRequest, act, is_sure, page, rest_address
from frontend.views.team_tabs import team_page

MEMBERS = "frontend:team"
TABLE = Shape(
    "members",
    (
        Column("name", "Name", sorts="username", fixed=True),
        Column("role", "Role", sorts="role"),
        Column("since", "Since", sorts="since", descending_first=True),
        Column("login", "Last login", sorts="user__last_login", descending_first=True),
        Column("remove", "Remove", fixed=True, has_hidden_head=True),
    ),
    default="name",
    tie_breakers=("username",),
)


@page
def index(request: PageRequest, name: str) -> HttpResponse:
    """Who is in the team with what role, and for its admins who is invited."""
    return _page(request, selectors.get_team(request.user, name))


def _page(request: PageRequest, team: Team, status: int = 200, **more: Any) -> HttpResponse:
    administers = may(request.user, Action.ADMINISTER, team)
    table = (TABLE if administers else TABLE.without_columns("remove")).table_for(request.GET)
    members = numbered_page(selectors.list_members(team).order_by(*table.ordering), request.GET.get("page"))
    context = {"page": members, "table": table, "roles": list(Role), "me": request.user}
    context["rest"] = rest_address("api:members", team.name)
    if administers:
        context |= {
            "invitations": selectors.list_invitations(request.user, team),
            "links": invitation_links.list_links(request.user, team).select_related("invited_by"),
            "invite_form": InviteForm(auto_id="invite-%s"),
            "link_form": InviteByLinkForm(auto_id="link-%s"),
            "mails": mail.is_configured(),
        }
    return team_page(request, team, "members", "teams/members.html", {**context, **more}, status=status)


@require_POST
@page
def invite(request: PageRequest, name: str) -> HttpResponse:
    """Invite somebody by user name, be there such a user or not."""
    team, form = selectors.get_team(request.user, name), InviteForm(request.POST, auto_id="invite-%s")
    require(request.user, Action.ADMINISTER, team)
    if not form.is_valid():
        return _page(request, team, status=400, invite_form=form)
    username = form.cleaned_data["username"]
    if team.memberships.filter(user__username=username).exists():
        return _page_with_problem(request, team, Conflict(f"{username} is already in the team. Change the role below."))
    return act(
        request,
        lambda: services.set_member(user=request.user, team=team, username=username, role=form.chosen),
        f"If there is a user {username}, they can accept the invitation on the page Teams.",
        reverse(MEMBERS, args=[name]),
    )


@require_POST
@page
def invite_by_link(request: PageRequest, name: str) -> HttpResponse:
    """Invite an e-mail address; the link is shown this once where no mail goes out."""
    team, form = selectors.get_team(request.user, name), InviteByLinkForm(request.POST, auto_id="link-%s")
    require(request.user, Action.ADMINISTER, team)
    if not form.is_valid():
        return _page(request, team, status=400, link_form=form)
    try:
        sent = invitation_links.invite_by_link(
            user=request.user,
            team=team,
            email=form.cleaned_data["email"],
            role=form.chosen,
            address=lambda secret: mail.link(reverse("frontend:join", args=[secret]), request),
        )
    except (InvalidInput, Conflict) as error:
        return _page_with_problem(request, team, error)
    return _page(request, team, sent=sent)


def _page_with_problem(request: PageRequest, team: Team, error: InvalidInput | Conflict) -> HttpResponse:
    return _page(request, team, status=error.status, problem=error)


@require_POST
@page
def withdraw_link(request: PageRequest, name: str, number: int) -> HttpResponse:
    """Make a link void."""
    team = selectors.get_team(request.user, name)
    return act(
        request,
        lambda: invitation_links.withdraw_link(user=request.user, team=team, link_id=number),
        "The invitation was withdrawn. Its link no longer works.",
        reverse(MEMBERS, args=[name]),
    )


@require_POST
@page
def withdraw(request: PageRequest, name: str, username: str) -> HttpResponse:
    """Withdraw an invitation by name."""
    team = selectors.get_team(request.user, name)
    return act(
        request,
        lambda: services.withdraw_invitation(user=request.user, team=team, username=username),
        f"The invitation of {username} is withdrawn.",
        reverse(MEMBERS, args=[name]),
    )


@require_POST
@page
def change_role(request: PageRequest, name: str, username: str) -> HttpResponse:
    """Give a member another role."""
    team, form = selectors.get_team(request.user, name), RoleForm(request.POST)
    require(request.user, Action.ADMINISTER, team)
    selectors.get_member(team, username)  # who is none is not invited by this
    if not form.is_valid():
        return _page_with_problem(request, team, InvalidInput("Choose one of the roles."))
    if username == request.user.username and not is_sure(request):
        return _confirm_own_role(request, team, form.chosen)
    return act(
        request,
        lambda: services.set_member(user=request.user, team=team, username=username, role=form.chosen),
        f"{username} is {form.chosen.value} now.",
        reverse(MEMBERS, args=[name]),
    )


def _confirm_own_role(request: PageRequest, team: Team, role: Role) -> HttpResponse:
    """Whether somebody means to change their own role."""
    text = (
        f"The role {role.value} {role.description}. "
        "If you give up the role admin, only another admin can give it back to you."
    )
    question = f"Change your own role in team {team.name} to {role.value}?"
    form = OwnRoleForm(initial={"role": role.value})
    action = PageAction("role", "Change my role", question, text, request.path, request.path, "danger", form)
    return render(request, "confirm.html", {"action": action, "back": reverse(MEMBERS, args=[team.name])})


@page
def remove(request: PageRequest, name: str, username: str) -> HttpResponse:
    """Ask, and remove a member."""
    team = selectors.get_team(request.user, name)
    require(request.user, Action.ADMINISTER, team)
    member = selectors.get_member(team, username)
    back = reverse(MEMBERS, args=[name])
    if request.method == "POST":
        return act(
            request,
            lambda: services.remove_member(user=request.user, team=team, username=username),
            f"{username} is no longer in the team.",
            back,
        )
    text = (
        "They can no longer see the team, and their tokens no longer work here. "
        "What they submitted keeps running: it belongs to the team."
    )
    action = PageAction(
        "remove",
        "Remove",
        f"Remove {member.user.username} from team {team.name}?",
        text,
        request.path,
        request.path,
        "danger",
    )
    return render(request, "confirm.html", {"action": action, "back": back})
