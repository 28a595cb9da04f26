"""Drafts of specs."""

from __future__ import annotations

import uuid

from django.db import models

from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import Team, User


class Draft(models.Model):
    """A spec that is being written. It is gone once it was submitted, or left alone for long."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="drafts")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="drafts")
    # Whose spec is changed, and the version that was begun with; None for a new one.
    supervisor = models.ForeignKey(Supervisor, on_delete=models.CASCADE, null=True, related_name="drafts")
    base_version = models.IntegerField(null=True)
    document = models.JSONField(default=dict)  # nested, without secrets
    secrets = models.TextField(blank=True)  # sealed
    step = models.CharField(max_length=20, default="", db_default="")  # where its last reader was
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-updated_at"]
        indexes = [models.Index(fields=["owner", "-updated_at"], name="draft_by_owner")]

    def __str__(self) -> str:
        return str(self.id)
