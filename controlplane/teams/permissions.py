"""The permission rules, in one place. A member of no team sees nothing; what can't be seen answers 404.

A request that shows a token with a scope has a user with ``limits``: they are looked at here, and nowhere else. A token
for named datasources sees these and what belongs to them; a team, its people, connections and drafts it does not see.
"""

from __future__ import annotations

from enum import Enum

from django.db.models import Q, QuerySet

from controlplane.common.errors import InvalidInput, NotAllowed
from controlplane.teams.models import Membership, Team, User
from controlplane.teams.roles import Role


class Action(Enum):
    """What may be done to a team's things, with the least role that may."""

    VIEW = Role.VIEWER
    OPERATE = Role.OPERATOR  # submit, suspend, resume, stop
    ADMINISTER = Role.ADMIN  # spec, datasources, members, tokens


_RANK = {Role.VIEWER: 0, Role.OPERATOR: 1, Role.ADMIN: 2}


def role_in(user: User, team: Team, datasource: str | None = None) -> Role | None:
    """The user's role; the site's administrator is admin everywhere.

    ``datasource``: of the team, where it is not known yet that the user may see it.
    """
    role = _role_without_limits(user, team)
    if role is None or user.limits is None:
        return role
    if datasource is not None and user.limits.datasources and datasource not in user.limits.datasources:
        return None
    return min(role, user.limits.scope.role, key=_RANK.__getitem__)


def _role_without_limits(user: User, team: Team) -> Role | None:
    if not user.is_active or not user.is_authenticated:
        return None
    if user.service_of_id is not None:  # without a token's limits it may nothing
        return Role.ADMIN if user.service_of_id == team.pk and user.limits is not None else None
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
        raise NotAllowed(_needs_text(user, action, f"team {team.name}"))


def _needs_text(user: User, action: Action, where: str) -> str:
    if user.limits is not None and _RANK[user.limits.scope.role] < _RANK[action.value]:
        return f"This needs the role {action.value.value}. This token has only the scope {user.limits.scope.value}."
    return f"This needs the role {action.value.value} in {where}."


def is_site_admin(user: User) -> bool:
    """Whether the user may do what concerns the whole site: its people, and which teams there are.

    No token with a scope is enough.
    """
    active = user.is_authenticated and user.is_active and user.service_of_id is None
    return active and user.is_superuser and user.limits is None


def require_site_admin(user: User) -> None:
    """Raise ``NotAllowed`` for anybody else."""
    if not is_site_admin(user):
        raise NotAllowed("This needs a site administrator.")


def require_person(user: User, what: str) -> None:
    """Raise ``NotAllowed`` for a service account and for a token with a scope: who acts for somebody else."""
    if user.limits is not None or user.service_of_id is not None:
        raise NotAllowed(f"No token with a scope may {what}. Log in, or use a token without a scope.")


def teams_of(user: User) -> QuerySet[Team]:
    """The teams that the user belongs to; the site's administrator belongs to all."""
    teams = Team.objects.filter(deleted_at__isnull=True)
    if not user.is_authenticated or not user.is_active or (user.limits is not None and user.limits.datasources):
        return teams.none()
    if user.service_of_id is not None:
        return teams.filter(pk=user.service_of_id) if user.limits is not None else teams.none()
    return teams if user.is_superuser else teams.filter(memberships__user=user)


def require_in_any_team(user: User, action: Action) -> None:
    """Raise ``NotAllowed`` when the user may not do this in any team: for what belongs to none yet."""
    if user.limits is not None and user.limits.datasources:
        raise NotAllowed("This token is limited to named datasources and gives no other rights.")
    if user.limits is not None and _RANK[user.limits.scope.role] < _RANK[action.value]:
        raise NotAllowed(_needs_text(user, action, "a team"))
    roles = [role for role, rank in _RANK.items() if rank >= _RANK[action.value]]
    everywhere = user.is_superuser or (user.service_of_id is not None and user.limits is not None)
    if not everywhere and not Membership.objects.filter(user=user, role__in=roles).exists():
        raise NotAllowed(_needs_text(user, action, "a team"))


def visible(user: User, path: str, datasource: str = "") -> Q:
    """The filter for rows whose team is at ``path`` (such as ``datasource__team``): those the user may see.

    ``datasource``: where the name of their datasource is, if ``path`` does not lead over it. Rows of no datasource are
    not for tokens of named ones.
    """
    if not user.is_authenticated or not user.is_active:
        return Q(pk__in=[])
    rows = _team_filter(user, path)
    if user.limits is None or not user.limits.datasources:
        return rows
    over, _, last = path.rpartition("datasource__")
    name = datasource or (f"{over}datasource__name" if last == "team" and over + last != path else "")
    return rows & Q(**{f"{name}__in": user.limits.datasources}) if name else Q(pk__in=[])


def _team_filter(user: User, path: str) -> Q:
    if user.service_of_id is not None:
        return Q(**{path: user.service_of_id}) if user.limits is not None else Q(pk__in=[])
    if user.is_superuser:
        return Q()
    return Q(**{f"{path}__memberships__user": user})


def team_for_new(user: User, name: str | None) -> Team:
    """The team that a new datasource belongs to: the one named, else the user's only one. Admin role needed."""
    if user.limits is not None and user.limits.datasources:
        raise NotAllowed("This token is limited to named datasources and gives no other rights.")
    teams = teams_of(user)
    if name:
        team = teams.filter(name=name).first()
        if team is None:
            raise InvalidInput(f"There is no team {name!r} that you belong to.")
    else:
        candidates = list(teams[:2])
        if len(candidates) != 1:
            raise InvalidInput("Choose the team of the new datasource (in REST: header X-Headgate-Team).")
        team = candidates[0]
    require(user, Action.ADMINISTER, team)
    return team
