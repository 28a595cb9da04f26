"""What every page's template is given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from controlplane.teams.models import Membership, Role, User

SECTIONS = (
    ("Datasources", "frontend:datasources"),
    ("Supervisors", "frontend:supervisors"),
    ("Tasks", "frontend:tasks"),
    ("Find a record", "frontend:records"),
)


@dataclass(frozen=True)
class NavigationItem:
    """One link of the bar at the top."""

    label: str
    url: str
    active: bool  # the page is in this section


class Reach:
    """The user's teams, and what may be submitted to at least one of them. Read once, if a template asks."""

    def __init__(self, user: User | None) -> None:
        self._user = user if user is not None and user.is_authenticated else None

    @cached_property
    def memberships(self) -> list[Membership]:
        if self._user is None:
            return []
        return list(Membership.objects.filter(user=self._user).select_related("team").order_by("team__name"))

    @property
    def may_submit_tasks(self) -> bool:
        return self._has(Role.OPERATOR, Role.ADMIN)

    @property
    def may_submit_supervisors(self) -> bool:
        return self._has(Role.ADMIN)

    @property
    def may_read_audit(self) -> bool:
        return self._has(Role.ADMIN)

    def _has(self, *roles: Role) -> bool:
        if self._user is None:
            return False
        return self._user.is_superuser or any(m.role in roles for m in self.memberships)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The site's name, the sections, where the request is, and what the user can reach."""
    items = [_item(label, reverse(name), request.path) for label, name in SECTIONS]
    return {"site_name": "Headgate", "navigation": items, "reach": Reach(getattr(request, "user", None))}


def _item(label: str, url: str, path: str) -> NavigationItem:
    return NavigationItem(label, url, path.startswith(url))
