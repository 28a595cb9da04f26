"""Reads of teams, members, invitations and tokens."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import (
    BooleanField,
    Case,
    CharField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.utils import timezone

from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.teams.models import ApiToken, Invitation, Membership, Team, User
from controlplane.teams.permissions import Action, require, teams_of
from controlplane.teams.roles import Role

INVITATION_LIFE = timedelta(days=30)


def list_teams(user: User) -> QuerySet[Team]:
    """The user's teams (the site's administrator's: all). Adds ``role``, the user's own, and ``member_count``."""
    teams = Team.objects.filter(pk__in=teams_of(user).values("pk"))
    return teams.annotate(
        member_count=Count("memberships"),
        role=_role_of(user),
    ).order_by("name")


def get_team(user: User, name: str) -> Team:
    """One of ``list_teams``. Raises ``NotFound``."""
    team = list_teams(user).filter(name=name).first() if storable(name) else None
    if team is None:
        raise NotFound(f"There is no team {name!r}.")
    return team


def teams_administered(user: User) -> QuerySet[Team]:
    """Those of ``list_teams`` in which the user is admin."""
    return list_teams(user).filter(role=Role.ADMIN.value)  # type: ignore[misc]  # list_teams adds it


def list_members(team: Team) -> QuerySet[Membership]:
    """The team's memberships by user name; each with ``username`` and its user."""
    return team.memberships.select_related("user").annotate(username=F("user__username")).order_by("user__username")


def get_member(team: Team, username: str) -> Membership:
    """One of ``list_members``. Raises ``NotFound``."""
    member = list_members(team).filter(user__username=username).first() if storable(username) else None
    if member is None:
        raise NotFound(f"{username!r} is not a member of team {team.name}.")
    return member


def list_invitations(user: User, team: Team) -> QuerySet[Invitation]:
    """A team's open invitations by user name. Raises ``NotAllowed``: only its admins see whom they have invited."""
    require(user, Action.ADMINISTER, team)
    return _open_invitations().filter(team=team).order_by("username")


def my_invitations(user: User) -> QuerySet[Invitation]:
    """The open invitations of a user by team, each with ``team_name`` and ``by``, who invited."""
    invitations = _open_invitations().filter(username=user.username)
    return invitations.annotate(team_name=F("team__name"), by=F("invited_by__username")).order_by("team_name")


def get_invitation(user: User, team_name: str) -> Invitation:
    """One of ``my_invitations``. Raises ``NotFound``."""
    invitations = my_invitations(user).select_related("team")
    invitation = invitations.filter(team__name=team_name).first() if storable(team_name) else None
    if invitation is None:
        raise NotFound(f"You have no invitation to team {team_name!r}.")
    return invitation


def _open_invitations() -> QuerySet[Invitation]:
    return Invitation.objects.filter(created_at__gt=timezone.now() - INVITATION_LIFE)


def list_member_tokens(user: User, team: Team) -> QuerySet[ApiToken]:
    """The tokens of a team's members, newest first, with ``username`` and ``elsewhere``. Raises ``NotAllowed``.

    ``elsewhere``: whether its user is also somebody where ``user`` is no admin. A token is for all teams of its user,
    so such a one is none of this team's alone.
    """
    require(user, Action.ADMINISTER, team)
    others = Membership.objects.filter(user=OuterRef("user")).exclude(team__in=teams_administered(user).values("pk"))
    elsewhere = Value(False) if user.is_superuser else Q(Exists(others)) | Q(user__is_superuser=True)
    tokens: QuerySet[ApiToken] = ApiToken.objects.filter(user__memberships__team=team)
    return tokens.annotate(
        username=F("user__username"), elsewhere=ExpressionWrapper(elsewhere, BooleanField())
    ).order_by("-created", "digest")


def get_member_token(user: User, team: Team, username: str, token_id: str) -> ApiToken:
    """One of ``list_member_tokens``. Raises ``NotAllowed``, ``NotFound``."""
    tokens = list_member_tokens(user, team)
    is_storable = storable(username) and storable(token_id)
    token = tokens.filter(user__username=username, token_key=token_id).first() if is_storable else None
    if token is None:
        raise NotFound(f"{username!r} has no token {token_id!r}.")
    return token


def list_tokens(user: User) -> QuerySet[ApiToken]:
    """The user's own tokens, newest first. Their secrets are not kept."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.filter(user=user).order_by("-created", "digest")
    return tokens


def get_token(user: User, token_id: str) -> ApiToken:
    """One of ``list_tokens`` by its id (the first characters of its secret). Raises ``NotFound``."""
    token = list_tokens(user).filter(token_key=token_id).first() if storable(token_id) else None
    if token is None:
        raise NotFound(f"You have no token {token_id!r}.")
    return token


def _role_of(user: User) -> Case | Subquery:
    """What ``role_in`` says, for many teams at once."""
    highest = Role.ADMIN if user.limits is None else user.limits.scope.role
    if user.is_superuser or user.service_of_id is not None:
        return Case(When(pk__isnull=False, then=Value(highest.value)), output_field=CharField())
    memberships = Membership.objects.filter(user_id=user.pk, team_id=OuterRef("pk"))
    capped = {
        Role.VIEWER: Case(When(pk__isnull=False, then=Value(Role.VIEWER.value)), output_field=CharField()),
        Role.OPERATOR: Case(
            When(role=Role.ADMIN.value, then=Value(Role.OPERATOR.value)), default=F("role"), output_field=CharField()
        ),
    }
    return Subquery(
        memberships.annotate(capped=capped[highest]).values("capped")
        if highest in capped
        else memberships.values("role")
    )
