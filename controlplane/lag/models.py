"""The lag of sources over time."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.sources.models import Source


class LagSample(models.Model):
    """What a source's lag was in a stretch of ``resolution_s`` seconds from ``at`` on, for charts and autoscaling."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="lag_samples")
    resolution_s = models.IntegerField()
    at = models.DateTimeField()
    observed_at = models.DateTimeField()
    lag = models.BigIntegerField()  # the largest that was seen, in offsets
    partitions = ArrayField(models.BigIntegerField())  # what it consisted of, by partition number
    # How much of these lies before the stored offset, where only backfills read; empty: nothing.
    passed = ArrayField(models.BigIntegerField(), default=list)
    in_flight = models.BigIntegerField()
    processed = models.BigIntegerField()
    beside = models.BigIntegerField(default=0, db_default=0)  # of these, by bounded reads and rewinds beside the reader
    redelivered = models.BigIntegerField()
    # Of records that have ended, replays aside: how many came into quarantine, and how many there are.
    quarantined = models.BigIntegerField(default=0, db_default=0)
    ended = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "resolution_s", "at"], name="one_sample_a_stretch_of_time")
        ]
        indexes = [models.Index(fields=["resolution_s", "at"], name="lag_sample_by_age")]


class UnreadTimes(models.Model):
    """When the oldest unread record of each partition is from, and what Kafka deletes of the topic: as last asked.

    Of sources with records that wait for longer than a minute; others have no row.
    """

    source = models.OneToOneField(Source, on_delete=models.CASCADE, primary_key=True, related_name="unread_times")
    observed_at = models.DateTimeField()
    problem = models.TextField(default="")  # why Kafka did not say; then the rest is what it last said
    retention = models.JSONField(default=dict)  # the topic's settings that say what Kafka deletes
    oldest = models.JSONField(default=dict)  # partition → ``OldestUnread``'s fields
