"""Sums over indexers that have ended, so that a scrape adds up only the others; and what teams used, by month."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.models import Datasource
from controlplane.teams.models import Team


class RecordSum(models.Model):
    """The counters of those of a datasource's indexers that are marked as summed."""

    datasource = models.OneToOneField(Datasource, on_delete=models.CASCADE, primary_key=True, related_name="+")
    counters = models.JSONField(default=dict)  # by their names, as ``ingestion.specs.counters`` has them
    last_publish_at = models.DateTimeField(null=True)


class TeamUsage(models.Model):
    """What a team's tasks used in a month of UTC."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="usage")
    month = models.CharField(max_length=7)  # 2026-03
    core_ms = models.BigIntegerField(default=0)
    read_bytes = models.BigIntegerField(default=0)
    stored_bytes = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "month"], name="one_usage_per_month")]

    @property
    def core_seconds(self) -> float:
        return self.core_ms / 1000


class UsageFold(models.Model):
    """Up to when it was added up. One row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    until = models.DateTimeField()
    open_tasks = models.JSONField(default=list)  # that had not ended then
    totals = models.JSONField(default=dict)  # datasource → bytes that it had read and stored by then

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_fold_of_usage")]
