"""What every page's template is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from controlplane.teams.models import Membership

SECTIONS = (
    ("Datasources", "frontend:datasources"),
    ("Supervisors", "frontend:supervisors"),
    ("Tasks", "frontend:tasks"),
    ("Find a record", "frontend:records"),
)


@dataclass(frozen=True)
class NavigationItem:
    """One link of the bar at the top. ``active``: the page is in this section."""

    label: str
    url: str
    active: bool


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The site's name, the sections, where the request is, and the user's teams (read only if a template asks)."""
    items = [_item(label, reverse(name), request.path) for label, name in SECTIONS]
    return {
        "site_name": "Headgate",
        "navigation": items,
        "memberships": SimpleLazyObject(lambda: _memberships(request)),
    }


def _item(label: str, url: str, path: str) -> NavigationItem:
    return NavigationItem(label, url, path.startswith(url))


def _memberships(request: HttpRequest) -> list[Membership]:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return []
    return list(Membership.objects.filter(user=user).select_related("team").order_by("team__name"))
