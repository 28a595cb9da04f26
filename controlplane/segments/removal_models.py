"""What was taken out of use, by whom and why."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.models import Datasource


class Removal(models.Model):
    """Segments of one datasource that somebody, or a rule, has marked unused."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="removals")
    by = models.CharField(max_length=200)  # the user's name, or the rule's
    what = models.CharField(max_length=500)  # was asked for, in words
    # Of what it marked; of that some may be in use again since.
    segments = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["datasource", "-id"], name="removal_by_datasource")]

    @property
    def sentence(self) -> str:
        """Who did it and when, for people: it goes on after 'removed'."""
        return f"by {self.by} at {self.created_at:%Y-%m-%d %H:%M:%S} UTC ({self.what})"
