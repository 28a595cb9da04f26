"""What every page's template is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from controlplane.alerts.selectors import count_firing
from controlplane.quarantine.selectors.causes import count_new_causes
from frontend.team_scope import Reach, reach_of


@dataclass(frozen=True)
class Section:
    """A page that the navigation leads to."""

    label: str
    view: str
    icon: str  # of Bootstrap Icons; the build puts it into the sprite
    key: str = ""  # after a g, leads there too
    # How many things of it need a person, asked once for each page that is shown; 0 shows nothing.
    badge: Callable[[Reach], int] | None = None
    # Whom it is shown to; None: everybody.
    may_open: Callable[[Reach], bool] | None = None


def _new_causes(reach: Reach) -> int:
    return count_new_causes(reach.user, team=reach.team) if reach.user is not None else 0


def _firing(reach: Reach) -> int:
    return count_firing(reach.user, reach.team) if reach.user is not None else 0


def _may_load(reach: Reach) -> bool:
    return reach.may_submit_tasks


def _administers_site(reach: Reach) -> bool:
    return reach.administers_site


# To add a page: one line here, in the order in which the navigation shows it.
SECTIONS = (
    Section("Home", "frontend:home", icon="house", key="h"),
    Section("Load data", "frontend:load", icon="box-arrow-in-down", key="l", may_open=_may_load),
    Section("Datasources", "frontend:datasources", icon="database", key="d"),
    Section("Query", "frontend:query", icon="terminal", key="y"),
    Section("Supervisors", "frontend:supervisors", icon="diagram-3", key="s"),
    Section("Tasks", "frontend:tasks", icon="play-circle", key="t"),
    Section("Quarantine", "frontend:quarantine", icon="shield-exclamation", key="q", badge=_new_causes),
    Section("Alerts", "frontend:alerts", icon="bell", key="a", badge=_firing),
    Section("Records", "frontend:records", icon="search", key="r"),
    Section("Connections", "frontend:connections", icon="plug", key="c"),
    Section("Teams", "frontend:teams", icon="people", key="m"),
    Section("People", "frontend:people", icon="person-badge", key="p", may_open=_administers_site),
    Section("Retention", "frontend:site-rules", icon="hourglass-split", may_open=_administers_site),
)


def sections_for(reach: Reach) -> list[Section]:
    """Those that lead somewhere for this user."""
    return [section for section in SECTIONS if section.may_open is None or section.may_open(reach)]


@dataclass(frozen=True)
class NavigationItem:
    """One link of the navigation."""

    label: str
    url: str
    icon: str
    key: str
    badge: int
    active: bool  # the page is in this section


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The site's name, the sections, where the request is, and what the user can reach.

    ``page_base``: what a page stands in that has a live part without an address of its own.
    """
    reach = reach_of(request)

    def items() -> list[NavigationItem]:
        return [_item(section, reach, request.path) for section in sections_for(reach)] if reach.is_logged_in else []

    is_htmx = bool(getattr(request, "htmx", False))
    base = "live_part.html" if is_htmx else "base.html"
    return {"site_name": "Headgate", "navigation": SimpleLazyObject(items), "reach": reach, "page_base": base}


def _item(section: Section, reach: Reach, path: str) -> NavigationItem:
    url = reverse(section.view)
    active = path == url if url == "/" else path.startswith(url)
    return NavigationItem(
        section.label, url, section.icon, section.key, section.badge(reach) if section.badge else 0, active
    )
