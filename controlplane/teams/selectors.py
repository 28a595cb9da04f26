"""Reads of teams, members and tokens."""

from __future__ import annotations

from django.db.models import Case, CharField, Count, F, OuterRef, QuerySet, Subquery, Value, When

from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.teams.models import ApiToken, Membership, Role, Team, User


def list_teams(user: User) -> QuerySet[Team]:
    """The user's teams (the site's administrator's: all). Adds ``role``, the user's own, and ``member_count``."""
    teams = Team.objects.all() if user.is_superuser else Team.objects.filter(pk__in=_team_ids(user))
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
    teams = list_teams(user)
    if user.is_superuser:
        return teams
    mine = Membership.objects.filter(user_id=user.pk, role=Role.ADMIN)
    return teams.filter(pk__in=mine.values("team"))


def list_members(team: Team) -> QuerySet[Membership]:
    """The team's memberships by user name; each with ``username`` and its user."""
    return team.memberships.select_related("user").annotate(username=F("user__username")).order_by("user__username")


def get_member(team: Team, username: str) -> Membership:
    """One of ``list_members``. Raises ``NotFound``."""
    member = list_members(team).filter(user__username=username).first() if storable(username) else None
    if member is None:
        raise NotFound(f"{username!r} is no member of team {team.name}.")
    return member


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


def _team_ids(user: User) -> QuerySet[Membership, int]:
    return Membership.objects.filter(user_id=user.pk).values_list("team_id", flat=True)


def _role_of(user: User) -> Case | Subquery:
    if user.is_superuser:
        return Case(When(pk__isnull=False, then=Value(Role.ADMIN.value)), output_field=CharField())
    mine = Membership.objects.filter(user_id=user.pk, team_id=OuterRef("pk"))
    return Subquery(mine.values("role"))
