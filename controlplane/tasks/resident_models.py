"""Applications that serve all datasources, and come and go with the work there is."""

from __future__ import annotations

from django.db import models


class Resident(models.Model):
    """One run of such an application. Its places are the pool's as long as it has not ended."""

    id = models.CharField(primary_key=True, max_length=300)
    token_hash = models.CharField(max_length=64)
    slots = models.IntegerField()
    finishing = models.BooleanField(default=False)  # it is to take no more work
    launched_at = models.DateTimeField()
    last_heartbeat_at = models.DateTimeField(null=True)
    idle_since = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-launched_at"]
        constraints = [
            models.UniqueConstraint(models.Value(1), condition=models.Q(ended_at=None), name="one_resident_at_a_time")
        ]


class CompactionShare(models.Model):
    """How much of the pool compaction may take, as an administrator of the site has set it. One row at most."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    ratio = models.FloatField()  # of the pool's places, 0 to 1
    most = models.IntegerField(null=True)  # slots, whatever the ratio makes; None for no bound
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_share_of_compaction")]
