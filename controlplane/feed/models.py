"""A datasource's publishes in the order in which others read them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.datasources.models import Datasource


class Feed(models.Model):
    """How far a datasource's publishes have been numbered. Made when somebody first asks for them."""

    datasource = models.OneToOneField(Datasource, on_delete=models.CASCADE, related_name="feed", primary_key=True)
    latest = models.BigIntegerField(default=0)
    # Every publish up to this time, and of this very time up to this id, has its number or brought no rows.
    numbered_until = models.DateTimeField(null=True)
    numbered_id = models.UUIDField(null=True)


class FeedEntry(models.Model):
    """One publish that brought rows. Numbers of a datasource go from 1 up by one."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="feed_entries")
    number = models.BigIntegerField()
    publish_id = models.UUIDField()
    segment_ids = ArrayField(models.UUIDField())
    published_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["datasource", "number"], name="a_publish_number_is_given_once"),
            models.UniqueConstraint(fields=["datasource", "publish_id"], name="a_publish_has_one_number"),
        ]
