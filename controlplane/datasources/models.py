"""Datasources."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from controlplane.teams.models import Team, User
from controlplane.teams.permissions import visible
from controlplane.teams.roles import Role


class DatasourceQuerySet(models.QuerySet["Datasource"]):
    def visible_to(self, user: User) -> DatasourceQuerySet:
        """Those of the user's teams."""
        return self.filter(visible(user, "team", datasource="name"))

    def present(self) -> DatasourceQuerySet:
        """Those that nobody has deleted."""
        return self.filter(deleted_at=None)


class Datasource(models.Model):
    """A named set of segments. The name is unique on the site: it is part of every segment's path."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="datasources")
    name = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    # When somebody deleted it, until a spec names it again; its progress stays, so that nothing is read twice.
    deleted_at = models.DateTimeField(null=True)
    deleted_by = models.CharField(max_length=150, blank=True)
    clearing = models.BooleanField(default=False, db_default=False)  # it was deleted, and not all of its segments yet
    # Another one after each deletion: a reader sees that this is not the table it has loaded before.
    identity = models.UUIDField(default=uuid.uuid4)

    objects = DatasourceQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def append_version(self) -> str:
        """The version under which streaming appends to an interval that has none yet."""
        return append_version(self.created_at)


def append_version(created_at: datetime) -> str:
    """The append version of a datasource that was made at that time: ISO 8601, UTC, ms."""
    return f"{created_at:%Y-%m-%dT%H:%M:%S}.{created_at.microsecond // 1000:03d}Z"


class MaskedColumn(models.Model):
    """A column of a datasource, and the least role that sees its values. See ``masking``."""

    datasource = models.ForeignKey("datasources.Datasource", on_delete=models.CASCADE, related_name="masked_columns")
    column = models.CharField(max_length=300)
    role = models.CharField(max_length=10, choices=[(r.value, r.label) for r in (Role.OPERATOR, Role.ADMIN)])

    class Meta:
        ordering = ["column"]
        constraints = [
            models.UniqueConstraint(fields=["datasource", "column"], name="a_column_is_masked_once"),
            models.CheckConstraint(condition=Q(role__in=[Role.OPERATOR, Role.ADMIN]), name="masked_below_a_role"),
        ]
