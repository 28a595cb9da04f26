"""Which provider people may log in by, as settings say it. Knows no models: settings read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

ROLES = ("viewer", "operator", "admin")  # in rising order


@dataclass(frozen=True)
class Provider:
    """One OpenID provider, and what its groups are worth here."""

    issuer: str
    client_id: str
    secret: str
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    label: str = "your organisation"
    groups_claim: str = "groups"
    teams: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)  # by group: teams with a role
    admin_group: str = ""
    takes_new_people: bool = False
    links_by_email: bool = False

    def roles_of(self, groups: Collection[str]) -> dict[str, str]:
        """Team → the highest role that one of these groups gives in it."""
        roles: dict[str, str] = {}
        for team, role in (pair for group in groups for pair in self.teams.get(group, ())):
            if ROLES.index(role) >= ROLES.index(roles.get(team, ROLES[0])):
                roles[team] = role
        return roles
