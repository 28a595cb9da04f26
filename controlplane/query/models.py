"""Statements that people keep, and those that they have run."""

from __future__ import annotations

from django.db import models

from controlplane.teams.models import Team, User


class SavedQuery(models.Model):
    """A statement with a name. Its owner alone sees it, or all members of the team that it is shared with."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_queries")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="saved_queries")
    name = models.CharField(max_length=200)
    description = models.CharField(max_length=2000, blank=True)
    statement = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["name", "id"], name="saved_query_by_name")]


class PastQuery(models.Model):
    """A query that has ended, for its user alone."""

    class State(models.TextChoices):
        SUCCEEDED = "succeeded", "succeeded"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"
        CLOSED = "closed", "closed by the client"  # the client did not read the answer to its end

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="past_queries")
    query_id = models.CharField(max_length=100)
    statement = models.TextField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveBigIntegerField()
    rows = models.PositiveBigIntegerField(null=True)  # of its whole result; None if the result was not sent to its end
    state = models.CharField(max_length=10, choices=State.choices)
    error = models.TextField(blank=True)

    class Meta:
        indexes = [models.Index(fields=["user", "-id"], name="past_query_by_user")]

    @property
    def seconds(self) -> str:
        return f"{self.duration_ms / 1000:,.2f}"
