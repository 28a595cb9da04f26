"""Sums over indexers that have ended, so that a scrape adds up only the others, however many there ever were."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.models import Datasource


class RecordSum(models.Model):
    """The counters of those of a datasource's indexers that are marked as summed."""

    datasource = models.OneToOneField(Datasource, on_delete=models.CASCADE, primary_key=True, related_name="+")
    counters = models.JSONField(default=dict)  # by their names, as ``ingestion.specs.counters`` has them
    last_publish_at = models.DateTimeField(null=True)
