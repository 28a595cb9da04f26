"""Columns whose values not every member of the team may see."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from controlplane.teams.models import Role


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
