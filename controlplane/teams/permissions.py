"""The permission rules, in one place. A member of no team sees nothing; what can't be seen answers 404."""

from __future__ import annotations

from enum import Enum

from django.db.models import Q

from controlplane.common.errors import InvalidInput, NotAllowed
from controlplane.teams.models import Membership, Role, Team, User


class Action(Enum):
    """What may be done to a team's things, with the least role that may."""

    VIEW = Role.VIEWER
    OPERATE = Role.OPERATOR  # submit, suspend, resume, stop
    ADMINISTER = Role.ADMIN  # spec, datasources, members, tokens


_RANK = {Role.VIEWER: 0, Role.OPERATOR: 1, Role.ADMIN: 2}


def role_in(user: User, team: Team) -> Role | None:
    """The user's role; the site's administrator is admin everywhere."""
    if not user.is_active or not user.is_authenticated:
        return None
    if user.is_superuser:
        return Role.ADMIN
    membership = Membership.objects.filter(user=user, team=team).first()
    return Role(membership.role) if membership else None


def may(user: User, action: Action, team: Team) -> bool:
    """Whether the user may do this to what the team owns."""
    role = role_in(user, team)
    return role is not None and _RANK[role] >= _RANK[action.value]


def require(user: User, action: Action, team: Team) -> None:
    """Raise ``NotAllowed`` with the role that is needed. The caller has made sure that the user may see it."""
    if not may(user, action, team):
        raise NotAllowed(f"This needs the role {action.value.value} in team {team.name}.")


def require_somewhere(user: User, action: Action) -> None:
    """Raise ``NotAllowed`` when the user may not do this in any team: for what belongs to none yet."""
    roles = [role for role, rank in _RANK.items() if rank >= _RANK[action.value]]
    if not user.is_superuser and not Membership.objects.filter(user=user, role__in=roles).exists():
        raise NotAllowed(f"This needs the role {action.value.value} in a team.")


def visible(user: User, path: str) -> Q:
    """The filter for rows whose team is at ``path`` (such as ``datasource__team``): those the user may see."""
    if not user.is_authenticated or not user.is_active:
        return Q(pk__in=[])
    if user.is_superuser:
        return Q()
    return Q(**{f"{path}__memberships__user": user})


def team_for_new(user: User, name: str | None) -> Team:
    """The team that a new datasource belongs to: the one named, else the user's only one. Admin role needed."""
    teams = Team.objects.all() if user.is_superuser else Team.objects.filter(memberships__user=user)
    if name:
        team = teams.filter(name=name).first()
        if team is None:
            raise InvalidInput(f"There is no team {name!r} that you belong to.")
    else:
        candidates = list(teams[:2])
        if len(candidates) != 1:
            raise InvalidInput("Say which team the new datasource belongs to (over REST: header X-Headgate-Team).")
        team = candidates[0]
    require(user, Action.ADMINISTER, team)
    return team
