"""Pages that the palette leads to, and what can be made on them."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from frontend.context import sections_for
from frontend.palette.hit import Hit
from frontend.team_scope import Reach


def pages_for(reach: Reach) -> list[Hit]:
    """What this user may make, and the pages that lead somewhere for them."""
    sections = [Hit(section.label, "page", reverse(section.view), section.icon) for section in sections_for(reach)]
    return [*_create_hits(reach), *sections, *_others(reach)]


def _create_hits(reach: Reach) -> Iterator[Hit]:
    if reach.may_submit_supervisors:
        yield _create_hit("Submit a supervisor", "new-supervisor")
        yield _create_hit("Import supervisors from Druid", "import-supervisors", icon="box-arrow-in-down")
        yield _create_hit("New Kafka cluster", "new-connection")
        yield _create_hit("New schema registry", "new-connection", "?kind=schema_registry")
        yield _create_hit("New alert rule", "new-alert-rule")
        yield _create_hit("New receiver of alerts", "new-alert-receiver")
    if reach.may_submit_tasks:
        yield _create_hit("Submit a task", "new-task")
        yield _create_hit("Silence all alerts of a team", "new-alert-silence", icon="bell-slash")
    if reach.administers_site:
        yield _create_hit("New team", "new-team")
        yield _create_hit("New user", "new-person")


def _others(reach: Reach) -> Iterator[Hit]:
    yield Hit("Your account", "page", reverse("frontend:account"), icon="person-circle")
    if reach.may_read_audit:
        yield Hit("Audit trail", "page", reverse("frontend:audit"), icon="journal-text")
    yield Hit("API", "page", "/api/docs/", icon="code-slash")
    if reach.administers_site:
        yield Hit("Style guide", "page", reverse("frontend:styleguide"), icon="palette")


def _create_hit(name: str, view: str, query: str = "", *, icon: str = "plus-lg") -> Hit:
    return Hit(name, "do", reverse(f"frontend:{view}") + query, icon=icon)
