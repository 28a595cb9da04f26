"""What the user of a request can reach: teams, roles, and the team whose things alone are shown, if one is chosen."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.http import HttpRequest

from controlplane.teams.models import Membership, User
from controlplane.teams.roles import Role
from controlplane.teams.selectors import list_teams

TEAM_KEY = "team"  # of the session
TEAMS_OFFERED = 200


class Reach:
    """The user's teams, and what may be submitted to the chosen one, else to any. Read once, if somebody asks."""

    def __init__(self, user: User | None, chosen: str = "") -> None:
        self.user = user if user is not None and user.is_authenticated else None
        self._chosen = chosen

    @property
    def is_logged_in(self) -> bool:
        """Somebody is logged in."""
        return self.user is not None

    @cached_property
    def memberships(self) -> list[Membership]:
        if self.user is None:
            return []
        return list(Membership.objects.filter(user=self.user).select_related("team").order_by("team__name"))

    @cached_property
    def teams(self) -> list[str]:
        """Those that the user can choose from."""
        if self.user is not None and self.user.is_superuser:
            return list(list_teams(self.user).values_list("name", flat=True)[:TEAMS_OFFERED])
        return [membership.team.name for membership in self.memberships]

    @property
    def team(self) -> str:
        """The one whose things alone are shown; empty for all. A team that was left is chosen no more."""
        return self._chosen if self._chosen and self._chosen in self.teams else ""

    def asked_team(self, request: HttpRequest) -> str:
        """What a form begins with: the team that the address names, else the chosen one."""
        return request.GET.get("team", "") or self.team

    def may_operate(self, team: str) -> bool:
        """Stop and resume what is that team's."""
        if self.user is None:
            return False
        allowed = (m.team.name == team and m.role in (Role.OPERATOR, Role.ADMIN) for m in self.memberships)
        return self.user.is_superuser or any(allowed)

    @property
    def administers_site(self) -> bool:
        return self.user is not None and self.user.is_superuser

    @property
    def may_submit_tasks(self) -> bool:
        return self._has(Role.OPERATOR, Role.ADMIN, team=self.team)

    @property
    def may_submit_supervisors(self) -> bool:
        return self._has(Role.ADMIN, team=self.team)

    @property
    def may_read_audit(self) -> bool:
        return self._has(Role.ADMIN)

    def _has(self, *roles: Role, team: str = "") -> bool:
        """In the team, or for no name in any."""
        if self.user is None:
            return False
        allowed = (m.role in roles for m in self.memberships if team in ("", m.team.name))
        return self.user.is_superuser or any(allowed)


def reach_of(request: HttpRequest) -> Reach:
    """Of the request's user; the same one however often it is asked."""
    reach: Reach | None = getattr(request, "_reach", None)
    if reach is None:
        session: Any = getattr(request, "session", {})
        reach = Reach(getattr(request, "user", None), str(session.get(TEAM_KEY, "")))
        request._reach = reach  # type: ignore[attr-defined]
    return reach
