"""What somebody may be in a team, and what a token leaves of that."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import models


class Role(models.TextChoices):
    """In rising order: each may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def description(self) -> str:
        """What it may do, in one line, as a page says it where the role is given."""
        return _MAY[self]


_MAY = {
    Role.VIEWER: "sees everything of the team except texts in stored rows",
    Role.OPERATOR: "also samples records, submits and stops tasks, suspends and resumes supervisors",
    Role.ADMIN: "also changes specs, datasources, connections and alerts, and manages members and tokens",
}


class Scope(models.TextChoices):
    """What a token may at most, in rising order."""

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"

    @property
    def role(self) -> Role:
        """The role whose rights these are."""
        return {Scope.READ: Role.VIEWER, Scope.OPERATE: Role.OPERATOR, Scope.ADMIN: Role.ADMIN}[self]


@dataclass(frozen=True)
class Limits:
    """What a token leaves of its user's rights."""

    scope: Scope
    datasources: frozenset[str] = frozenset()  # these alone, and nothing else of a team; empty: all
